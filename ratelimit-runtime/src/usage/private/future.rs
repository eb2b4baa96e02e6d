//! The decision about a call, as generated code awaits it. It is a pointer, because the future of every limited function holds
//! one, and most calls need none.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::{AttributeCall, Charged, Refusal};
use crate::decide::backend::failover::AcquireFuture;

/// The decision about a call.
#[must_use]
pub struct DecisionFuture(Box<State>);

enum State {
    /// `None` once it is polled.
    Ready(Option<Result<Charged, Refusal>>),
    Pending(AcquireFuture),
}

impl DecisionFuture {
    pub(super) fn ready(decision: Result<Charged, Refusal>) -> Self {
        DecisionFuture(Box::new(State::Ready(Some(decision))))
    }

    pub(super) fn pending(future: AcquireFuture) -> Self {
        DecisionFuture(Box::new(State::Pending(future)))
    }
}

impl Future for DecisionFuture {
    type Output = Result<Charged, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self.0 {
            State::Ready(decision) => decision.take().map_or(Poll::Pending, Poll::Ready),
            State::Pending(future) => {
                let result = ready!(Pin::new(&mut *future).poll(context));
                let decision = future.backend().finish(result, &AttributeCall);
                Poll::Ready(decision.unwrap_or(Ok(Charged::NOTHING)))
            }
        }
    }
}

impl fmt::Debug for DecisionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionFuture")
    }
}
