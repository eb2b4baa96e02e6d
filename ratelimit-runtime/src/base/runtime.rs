//! Tokio runtimes around calls that block: the one that they must not be called on, and the one that they use.

use std::task::{Context, Poll, Waker};
use std::{future, io, process, thread};

use once_cell::sync::OnceCell;
use tokio::runtime::{Builder, Handle};
use tokio::task::coop::poll_proceed;

/// More operations than tokio lets a task do before it has to yield: 128, kept in a byte.
const MORE_THAN_A_BUDGET: usize = 256;

/// Returns whether the caller runs in a task or a `block_on` of a tokio runtime, which it must not block.
///
/// Tokio tells only by a panic. But there, and not in `spawn_blocking`, in `block_in_place` or on a thread that only entered a
/// runtime, a caller has a budget of operations, and this tries to exhaust it.
pub(crate) fn is_async_context() -> bool {
    if Handle::try_current().is_err() {
        return false;
    }
    let mut context = Context::from_waker(Waker::noop());
    // Restores the budget when it is dropped.
    let Poll::Ready(_budget) = poll_proceed(&mut context) else { return true };
    (0..MORE_THAN_A_BUDGET).any(|_| match poll_proceed(&mut context) {
        Poll::Ready(operation) => {
            operation.made_progress();
            false
        }
        Poll::Pending => true,
    })
}

/// Returns a runtime of our own, which runs on a thread of its own until the process ends. The first call starts it. Fails in a
/// forked child of a process that has started it: the child does not have the thread, and would wait for ever.
pub(crate) fn background() -> io::Result<Handle> {
    /// The runtime, and the process that has its thread.
    static BACKGROUND: OnceCell<(u32, Handle)> = OnceCell::new();
    let start = || {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let run = move || runtime.block_on(future::pending::<()>());
        thread::Builder::new().name("ratelimits".into()).spawn(run)?;
        io::Result::Ok((process::id(), handle))
    };
    let (process, handle) = BACKGROUND.get_or_try_init(start)?;
    if *process != process::id() {
        return Err(io::Error::other(
            "this process was forked after its parent had started it; fork before that, or `exec`",
        ));
    }
    Ok(handle.clone())
}
