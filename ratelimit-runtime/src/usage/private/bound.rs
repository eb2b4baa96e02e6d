//! The decision about a call whose body gets it, by `bind`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::Refusal;
use super::future::Later;
use crate::decide::acquired::{Acquired, DecidedRequest};
use crate::decide::backend::failover::AcquireFuture;
use crate::decide::decision::Decision;
use crate::decide::definition::DefinitionRef;
use crate::decide::error::Error;
use crate::decide::{Caller, FewDecision, SingleDecision};
use crate::store::Store;

/// The decision about a call, or what it has to await.
#[must_use]
#[derive(Debug)]
pub enum Bound {
    /// It is decided.
    Decided(Result<Decision, Refusal>),
    /// It has to be awaited.
    Later(BoundFuture),
}

/// The decision about a call that has to be awaited.
#[must_use]
pub struct BoundFuture(Later);

/// The call of a limited function whose body gets the decision.
pub(super) struct BoundCall;

impl Caller for BoundCall {
    type Decision = Result<Decision, Refusal>;

    fn admitted(&self) -> Option<Self::Decision> {
        None
    }

    fn single(&self, decision: SingleDecision<'_>) -> Self::Decision {
        // That of an attribute lives as long as the process.
        let policy = match decision.charge.definition {
            DefinitionRef::Static(definition) => definition.attribute.index,
            DefinitionRef::Counted(_) => None,
        };
        if decision.charge.shadow {
            return Ok(decision.into_shadow_decision());
        }
        decision.into_result().map_err(|error| Refusal::new(policy, error))
    }

    fn few(&self, decision: impl FewDecision) -> Self::Decision {
        if decision.admitted() {
            return Ok(decision.into_decision());
        }
        let (policy, error) = decision.into_error();
        Err(Refusal::new(policy, error))
    }

    fn decided(&self, acquired: Acquired<'_>, store: Option<&Store>) -> Self::Decision {
        let decision = acquired.into_decision(store);
        if acquired.outcome.admitted {
            return Ok(decision);
        }
        let policy = acquired.request.policies()[decision.reported()].definition.attribute.index;
        Err(Refusal::new(policy, decision.into_error()))
    }

    fn awaited(&self, decided: DecidedRequest, store: Option<&Store>) -> Self::Decision {
        if decided.outcome.admitted {
            return Ok(decided.into_decision(store));
        }
        self.decided(decided.acquired(), store)
    }

    fn failed(&self, policy: Option<usize>, error: Error) -> Self::Decision {
        Err(Refusal::new(policy, error))
    }
}

/// The decision that a body gets whose policies never refuse.
#[must_use]
pub fn unlimited() -> Decision {
    Decision::unlimited()
}

impl Bound {
    pub(super) fn of(decision: Result<Decision, Refusal>) -> Self {
        match decision.map_err(Later::of) {
            Ok(decision) => Bound::Decided(Ok(decision)),
            Err(Ok(refusal)) => Bound::Decided(Err(refusal)),
            Err(Err(later)) => Bound::Later(BoundFuture(later)),
        }
    }
}

impl BoundFuture {
    pub(super) fn new(future: AcquireFuture) -> Self {
        BoundFuture(Later::new(future))
    }
}

impl Future for BoundFuture {
    type Output = Result<Decision, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(ready!(self.0.poll(context, &BoundCall))?)
    }
}

impl fmt::Debug for BoundFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundFuture")
    }
}
