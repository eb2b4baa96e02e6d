//! Timers: tokio's, without their panics, or those of a thread that blocks.

use std::future::{Future, pending, poll_fn};
use std::mem;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use tokio::runtime::Handle;
use tokio::time::{Instant, sleep_until};

use crate::base::parker::Parker;

/// The runtime has no timers, or no longer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoTimers;

/// What wakes a call that waits.
#[derive(Clone)]
pub(crate) enum Timers {
    /// The runtime on which the call began.
    Tokio(Handle),
    /// The thread that blocks on it.
    Thread(Arc<Parker>),
}

impl Timers {
    /// Returns the timers of the current runtime; `None` outside a runtime.
    pub(crate) fn current() -> Option<Self> {
        Handle::try_current().ok().map(Timers::Tokio)
    }

    /// Returns the runtime, if it is one.
    pub(crate) fn runtime(&self) -> Option<&Handle> {
        match self {
            Timers::Tokio(runtime) => Some(runtime),
            Timers::Thread(_) => None,
        }
    }

    /// Awaits the future until `end`, as [`until`] does.
    pub(crate) async fn until<F: Future>(
        &self,
        end: Instant,
        future: F,
    ) -> Result<Option<F::Output>, NoTimers> {
        match self {
            Timers::Tokio(runtime) => until_on(runtime, end, pin!(future), true).await,
            Timers::Thread(parker) => Ok(parker.until(end, future).await),
        }
    }
}

/// Awaits the future until `end`. Returns its output, even if it is ready only after `end`, or `None` once the time is over.
///
/// The caller pins the future, because an async function holds its arguments twice.
///
/// The timer belongs to the runtime on which this is first polled, or outside a runtime, to the one on which the call began.
/// When that runtime shuts down, this fails, or returns `None` early if it is polled on another one by now, so callers check the
/// time again.
pub(crate) fn until<F: Future>(
    began: &Handle,
    end: Instant,
    future: Pin<&mut F>,
) -> impl Future<Output = Result<Option<F::Output>, NoTimers>> {
    until_on(began, end, future, false)
}

/// Does that. `wakes` says whether the end of the runtime may have woken the call that waits.
async fn until_on<F: Future>(
    began: &Handle,
    end: Instant,
    mut future: Pin<&mut F>,
    mut wakes: bool,
) -> Result<Option<F::Output>, NoTimers> {
    let current = || Handle::try_current().unwrap_or_else(|_| began.clone());
    let runtime = current();
    // Tokio panics if the runtime has no timers, or no longer.
    let timer = {
        let _entered = runtime.enter();
        catch_unwind(|| sleep_until(end))
    };
    let mut timer = pin!(timer.map_err(|_| NoTimers)?);
    let mut is_set = false;
    poll_fn(|context| match future.as_mut().poll(context) {
        Poll::Ready(output) => Poll::Ready(Ok(Some(output))),
        Poll::Pending if is_set && Instant::now() >= end => Poll::Ready(Ok(None)),
        // Looked for, because even a panic that is caught is printed.
        Poll::Pending if mem::replace(&mut wakes, true) && has_ended(&runtime) => {
            Poll::Ready(if current().id() == runtime.id() { Err(NoTimers) } else { Ok(None) })
        }
        Poll::Pending => match catch_unwind(AssertUnwindSafe(|| timer.as_mut().poll(context))) {
            Ok(over) => {
                is_set = true;
                over.map(|()| Ok(None))
            }
            Err(_) if is_set => Poll::Ready(Ok(None)),
            // A timer that could not be set will not be set on a retry either.
            Err(_) => Poll::Ready(Err(NoTimers)),
        },
    })
    .await
}

/// Whether the runtime has shut down, or is about to: it drops at once what it is given.
pub(crate) fn has_ended(runtime: &Handle) -> bool {
    let task = runtime.spawn(pending::<()>());
    let has_ended = task.is_finished();
    task.abort();
    has_ended
}
