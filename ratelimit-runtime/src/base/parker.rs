//! A thread that blocks on a future.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use tokio::time::Instant;

/// How long a thread sleeps at most before it looks at the clock again. Tokio's clock, which tests can pause, may be advanced
/// while it sleeps.
const MAX_SLEEP: Duration =
    if cfg!(feature = "test-util") { Duration::from_millis(5) } else { Duration::MAX };

/// Parks a thread while the future that it blocks on has nothing to do.
#[derive(Debug)]
pub(crate) struct Parker {
    thread: Thread,
    woken: AtomicBool,
    /// When to poll the future again, whether or not it is woken.
    alarm: Mutex<Option<Instant>>,
}

impl Parker {
    /// A parker of this thread.
    pub(crate) fn new() -> Arc<Self> {
        let thread = thread::current();
        Arc::new(Parker { thread, woken: AtomicBool::new(false), alarm: Mutex::new(None) })
    }

    /// Runs the future on this thread.
    pub(crate) fn block_on<F: Future>(self: &Arc<Self>, future: F) -> F::Output {
        let waker = Waker::from(Arc::clone(self));
        let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
        loop {
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                return output;
            }
            self.park();
        }
    }

    /// Awaits the future until `end`. Returns its output, or `None` once the time is over. Only for a future that this parker
    /// runs.
    pub(crate) async fn until<F: Future>(&self, end: Instant, future: F) -> Option<F::Output> {
        let mut future = pin!(future);
        poll_fn(|context| match future.as_mut().poll(context) {
            Poll::Ready(output) => Poll::Ready(Some(output)),
            Poll::Pending if Instant::now() >= end => Poll::Ready(None),
            Poll::Pending => {
                let mut alarm = self.alarm();
                *alarm = Some(alarm.map_or(end, |alarm| alarm.min(end)));
                Poll::Pending
            }
        })
        .await
    }

    /// Sleeps until the future is woken or its alarm is due.
    fn park(&self) {
        let alarm = self.alarm().take();
        while !self.woken.swap(false, Ordering::Acquire) {
            match alarm.map(|alarm| alarm.saturating_duration_since(Instant::now())) {
                Some(Duration::ZERO) => return,
                Some(left) => thread::park_timeout(left.min(MAX_SLEEP)),
                None => thread::park(),
            }
        }
    }

    fn alarm(&self) -> MutexGuard<'_, Option<Instant>> {
        self.alarm.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Parker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.woken.store(true, Ordering::Release);
        self.thread.unpark();
    }
}
