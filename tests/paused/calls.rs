//! Calls made at one time.

use std::time::Duration;

use ratelimits::Limiter;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// More than any policy here admits at one time.
const MANY: usize = 1000;

/// Calls, one after another and before the first is done. Each is told with how long it took.
pub(super) fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    calls: usize,
    call: impl Fn() -> F,
) -> Vec<JoinHandle<(T, Duration)>> {
    (0..calls).map(|_| spawn(call())).collect()
}

/// A call with how long it took.
pub(super) fn spawn<T: Send + 'static>(
    call: impl Future<Output = T> + Send + 'static,
) -> JoinHandle<(T, Duration)> {
    let begin = Instant::now();
    tokio::spawn(async move { (call.await, begin.elapsed()) })
}

/// Takes what is there, until somebody would have to wait.
pub(super) async fn take_all(limiter: &Limiter) {
    for _ in 0..MANY {
        if limiter.try_acquire((), 1).await.is_err() {
            return;
        }
    }
    panic!("{:?} admits {MANY} at one time", limiter.policy());
}
