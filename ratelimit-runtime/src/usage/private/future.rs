//! The decision about a call, as generated code awaits it. It is a pointer, because the future of every limited function holds
//! one, and most calls need none.

use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use super::charged::{AttributeCall, Charged, Refusal};
use crate::decide::backend::failover::AcquireFuture;

/// The decision about a call.
#[must_use]
pub struct DecisionFuture(Option<Box<State>>);

enum State {
    /// `None` once it is polled.
    Ready(Option<Result<Charged, Refusal>>),
    Pending(AcquireFuture),
}

thread_local! {
    /// The memory of a decision that was read. Under a flood most calls are refused, each with one.
    static SPARE: Cell<Option<Box<State>>> = const { Cell::new(None) };
}

impl DecisionFuture {
    pub(super) fn ready(decision: Result<Charged, Refusal>) -> Self {
        let state = State::Ready(Some(decision));
        DecisionFuture(Some(match SPARE.try_with(Cell::take) {
            Ok(Some(mut spare)) => {
                *spare = state;
                spare
            }
            _ => Box::new(state),
        }))
    }

    pub(super) fn pending(future: AcquireFuture) -> Self {
        DecisionFuture(Some(Box::new(State::Pending(future))))
    }
}

impl Future for DecisionFuture {
    type Output = Result<Charged, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(state) = &mut self.0 else { return Poll::Pending };
        match &mut **state {
            State::Ready(decision) => {
                let Some(decision) = decision.take() else { return Poll::Pending };
                let _ = SPARE.try_with(|spare| spare.set(self.0.take()));
                Poll::Ready(decision)
            }
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
