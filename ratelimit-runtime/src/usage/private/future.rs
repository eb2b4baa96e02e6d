//! The decision about a call, as generated code awaits it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::{AttributeCall, Charged, Refusal};
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
            Err(refusal) => Decided::Refused(refusal),
        }
    }
}

/// The decision about a call that has to be awaited. `None` once it is there.
#[must_use]
pub struct DecisionFuture(Option<Box<AcquireFuture>>);

impl DecisionFuture {
    pub(super) fn new(future: AcquireFuture) -> Self {
        DecisionFuture(Some(Box::new(future)))
    }
}

impl Future for DecisionFuture {
    type Output = Result<Charged, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(future) = &mut self.0 else { return Poll::Pending };
        let result = ready!(Pin::new(&mut **future).poll(context));
        let decision = future.backend().finish(result, &AttributeCall);
        self.0 = None;
        Poll::Ready(decision.unwrap_or(Ok(Charged::NOTHING)))
    }
}

impl fmt::Debug for DecisionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionFuture")
    }
}
