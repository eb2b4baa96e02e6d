//! The budget of operations that tokio gives a task, so that tasks which never have to wait let others run.

use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop::poll_proceed;

/// Spends an operation. Pending if none is left: the task is polled again after others have run. Where there is no budget, as on
/// other runtimes, it is always ready.
#[inline(never)]
pub(crate) fn poll_spend(context: &mut Context<'_>) -> Poll<()> {
    ready!(poll_proceed(context)).made_progress();
    Poll::Ready(())
}

/// Spends an operation where nothing is polled. Returns whether there was one left.
pub(crate) fn spend() -> bool {
    poll_spend(&mut Context::from_waker(Waker::noop())).is_ready()
}
