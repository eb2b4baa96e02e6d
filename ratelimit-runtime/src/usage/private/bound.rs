//! The decision about a call whose body gets it, by `bind`.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::Refusal;
use crate::base::coop::{poll_spend, spend_if_due};
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

enum Later {
    Deciding(Box<AcquireFuture>),
    /// The task has to let others run first. `None` once the decision is there.
    Refused(Option<Refusal>),
}

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
        match decision {
            // It is awaited if the task has to let others run first.
            Err(refusal) if !spend_if_due() => Bound::Later(BoundFuture(Later::Refused(Some(refusal)))),
            decision => Bound::Decided(decision),
        }
    }
}

impl BoundFuture {
    pub(super) fn new(future: AcquireFuture) -> Self {
        BoundFuture(Later::Deciding(Box::new(future)))
    }
}

impl Future for BoundFuture {
    type Output = Result<Decision, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Later::Deciding(future) => {
                let result = ready!(Pin::new(&mut **future).poll(context));
                let decision = future.backend().finish(result, &BoundCall);
                self.0 = Later::Refused(None);
                Poll::Ready(decision)
            }
            Later::Refused(refusal) => {
                ready!(poll_spend(context));
                refusal.take().map_or(Poll::Pending, |refusal| Poll::Ready(Err(refusal)))
            }
        }
    }
}

impl fmt::Debug for BoundFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoundFuture")
    }
}
