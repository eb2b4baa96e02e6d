//! The decision about a call, as generated code awaits it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::{AttributeCall, Charged, Refusal};
use crate::base::coop::{poll_spend, spend_if_due};
use crate::decide::Caller;
use crate::decide::backend::failover::AcquireFuture;

/// The decision about a call that is not just admitted. Two words, which are returned in registers.
#[must_use]
#[derive(Debug)]
pub enum Decided {
    /// It is admitted, and may be refunded.
    Charged(Charged),
    /// It is refused.
    Refused(Refusal),
    /// It has to be awaited.
    Later(DecisionFuture),
}

impl Decided {
    #[inline(always)]
    pub(super) fn of(decision: Result<Charged, Refusal>) -> Self {
        match decision {
            Ok(charged) => Decided::Charged(charged),
            Err(refusal) => Decided::refused(refusal),
        }
    }

    /// A refusal, which is awaited if the task has to let others run first.
    #[inline(always)]
    fn refused(refusal: Refusal) -> Self {
        match Later::of(refusal) {
            Ok(refusal) => Decided::Refused(refusal),
            Err(later) => Decided::Later(DecisionFuture(later)),
        }
    }
}

/// The decision about a call that has to be awaited.
#[must_use]
pub struct DecisionFuture(Later);

/// What a decision awaits.
pub(super) enum Later {
    Deciding(Box<AcquireFuture>),
    /// The task has to let others run first. `None` once the decision is there.
    Refused(Option<Refusal>),
}

impl DecisionFuture {
    pub(super) fn new(future: AcquireFuture) -> Self {
        DecisionFuture(Later::new(future))
    }
}

impl Later {
    pub(super) fn new(future: AcquireFuture) -> Self {
        Later::Deciding(Box::new(future))
    }

    /// Returns the refusal, unless the task has to let others run first.
    #[inline(always)]
    pub(super) fn of(refusal: Refusal) -> Result<Refusal, Self> {
        if spend_if_due() { Ok(refusal) } else { Err(Later::Refused(Some(refusal.kept()))) }
    }

    /// Polls for the decision, or else the refusal.
    pub(super) fn poll<C: Caller>(
        &mut self,
        context: &mut Context<'_>,
        caller: &C,
    ) -> Poll<Result<C::Decision, Refusal>> {
        match self {
            Later::Deciding(future) => {
                let result = ready!(Pin::new(&mut **future).poll(context));
                let decision = future.backend().finish(result, caller);
                *self = Later::Refused(None);
                Poll::Ready(Ok(decision))
            }
            Later::Refused(refusal) => {
                ready!(poll_spend(context));
                refusal.take().map_or(Poll::Pending, |refusal| Poll::Ready(Err(refusal)))
            }
        }
    }
}

impl Future for DecisionFuture {
    type Output = Result<Charged, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let decision = ready!(self.0.poll(context, &AttributeCall))?;
        Poll::Ready(decision.unwrap_or(Ok(Charged::NOTHING)))
    }
}

impl fmt::Debug for DecisionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionFuture")
    }
}
