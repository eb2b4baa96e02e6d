//! Calls that are made at the same time.

use std::time::Duration;

use ratelimits::{Decision, Error, Limiter};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// A spawned call: its output, and how long it took.
pub(super) type Timed<T> = JoinHandle<(T, Duration)>;

/// Starts calls in order, each before the previous one is done.
pub(super) fn spawn_all<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    calls: usize,
    call: impl Fn() -> F,
) -> Vec<Timed<T>> {
    let begin = Instant::now();
    let spawn = |call: F| tokio::spawn(async move { (call.await, begin.elapsed()) });
    (0..calls).map(|_| spawn(call())).collect()
}

pub(super) fn acquire_all(
    limiter: &Limiter,
    calls: usize,
    timeout: Duration,
) -> Vec<Timed<Result<Decision, Error>>> {
    spawn_all(calls, || {
        let limiter = limiter.clone();
        async move { limiter.acquire_timeout((), timeout).await }
    })
}

/// Takes permits until a call would have to wait.
pub(super) async fn exhaust(limiter: &Limiter) {
    for _ in 0..1000 {
        if limiter.try_acquire(()).await.is_err() {
            return;
        }
    }
    panic!("{:?} admits too many calls at one time", limiter.policy());
}
