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

/// A runtime of our own, which runs on a thread of its own until the process ends. Its first use starts it.
#[derive(Debug)]
pub(crate) struct OwnRuntime {
    thread: &'static str,
    /// The process that has the thread, and the runtime.
    started: OnceCell<(u32, Handle)>,
}

/// That of calls that block.
pub(crate) static BACKGROUND: OwnRuntime = OwnRuntime::new("ratelimits");

impl OwnRuntime {
    pub(crate) const fn new(thread: &'static str) -> Self {
        OwnRuntime { thread, started: OnceCell::new() }
    }

    /// Fails in a forked child of a process that has started it: the child does not have the thread, and would wait for ever.
    pub(crate) fn handle(&self) -> io::Result<Handle> {
        let start = || {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let handle = runtime.handle().clone();
            let run = move || runtime.block_on(future::pending::<()>());
            thread::Builder::new().name(self.thread.into()).spawn(run)?;
            io::Result::Ok((process::id(), handle))
        };
        let (process, handle) = self.started.get_or_try_init(start)?;
        if *process != process::id() {
            return Err(io::Error::other(
                "this process was forked after its parent had started it; fork before that, or `exec`",
            ));
        }
        Ok(handle.clone())
    }
}
