//! The budget of operations that tokio gives a task, so that tasks which never have to wait let others run.

use std::cell::Cell;
use std::task::{Context, Poll, Waker, ready};

use tokio::task::coop::poll_proceed;

/// How many refusals spend an operation together: to ask tokio costs a good part of what a refusal does.
const REFUSALS: u32 = 64;

thread_local! {
    /// The refusals of the thread that have not been paid for.
    static UNPAID: Cell<u32> = const { Cell::new(0) };
}

/// Spends an operation. Pending if none is left: the task is polled again after others have run. Where there is no budget, as on
/// other runtimes, it is always ready.
#[inline(never)]
pub(crate) fn poll_spend(context: &mut Context<'_>) -> Poll<()> {
    ready!(poll_proceed(context)).made_progress();
    UNPAID.set(0);
    Poll::Ready(())
}

/// Counts a refusal.
#[inline(always)]
pub(crate) fn count_refusal() {
    UNPAID.with(|unpaid| unpaid.set(unpaid.get().saturating_add(1)));
}

/// Whether an operation is to be spent on the refusals so far.
#[inline(always)]
pub(crate) fn is_due() -> bool {
    UNPAID.get() >= REFUSALS
}

/// Spends an operation, if it is due, where nothing is polled. Returns whether there was one left.
#[inline(always)]
pub(crate) fn spend_if_due() -> bool {
    !is_due() || poll_spend(&mut Context::from_waker(Waker::noop())).is_ready()
}
