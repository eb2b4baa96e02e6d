//! Functions that are not async and wait, under a clock that only the test advances.

use std::time::Duration;

use ratelimits::{Error, concurrency_limit, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::task::{JoinHandle, spawn_blocking, yield_now};
use tokio::time::{Instant, advance};

use crate::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);

type Function = fn() -> Result<Duration, Error>;

#[rate_limit("1/s", burst = 1, timeout = "1s", bind = decision)]
fn bucket() -> Result<Duration, Error> {
    Ok(decision.waited)
}

#[count_limit(1, "1s", timeout = "forever", bind = decision)]
fn window() -> Result<Duration, Error> {
    Ok(decision.waited)
}

#[funnel_limit(1, "1/s", queue, bind = decision)]
fn queue() -> Result<Duration, Error> {
    Ok(decision.waited)
}

#[window_limit(1, "1s", timeout = "1s", bind = decision)]
#[rate_limit("2/s", burst = 1, timeout = "1s")]
fn stacked() -> Result<Duration, Error> {
    Ok(decision.waited)
}

/// Calls a function on a thread, and waits until its call waits.
async fn waiting(function: Function) -> JoinHandle<Result<Duration, Error>> {
    let log = LogCapture::default();
    let thread_log = log.clone();
    let call = spawn_blocking(move || tracing::subscriber::with_default(thread_log, function));
    while !log.messages().iter().any(|message| message == "call is waiting") {
        assert!(!call.is_finished());
        yield_now().await;
    }
    call
}

#[tokio::test(start_paused = true)]
async fn functions_block_their_thread_for_as_long_as_needed() {
    for function in [bucket as Function, window, queue, stacked] {
        // At once, even in async code.
        assert_eq!(function().unwrap(), Duration::ZERO);
        let call = waiting(function).await;
        advance(SECOND - Duration::from_millis(1)).await;
        assert!(!call.is_finished());
        advance(Duration::from_millis(1)).await;
        assert_eq!(call.await.unwrap().unwrap(), SECOND);
    }
}

#[tokio::test(start_paused = true)]
async fn waits_beyond_the_timeout_are_refused_at_once() {
    let start = Instant::now();
    assert_eq!(bucket().unwrap(), Duration::ZERO);
    let second = waiting(bucket).await;
    let third = spawn_blocking(bucket).await.unwrap().unwrap_err();
    assert_eq!((third.retry_after(), start.elapsed()), (Some(2 * SECOND), Duration::ZERO));
    advance(SECOND).await;
    second.await.unwrap().unwrap();
}

#[concurrency_limit(1, timeout = "1s")]
fn held(body: impl FnOnce()) -> Result<(), Error> {
    body();
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn waits_for_a_hold_end_with_it_or_the_timeout() {
    let (release, released) = std::sync::mpsc::channel::<()>();
    let (started, has_started) = tokio::sync::oneshot::channel();
    let body = move || {
        started.send(()).unwrap();
        released.recv().unwrap();
    };
    let holder = spawn_blocking(|| held(body));
    has_started.await.unwrap();
    let call = || held(|| ()).map(|()| Duration::ZERO);
    let refused = waiting(call).await;
    advance(SECOND).await;
    assert!(refused.await.unwrap().unwrap_err().is_limited());
    let admitted = waiting(call).await;
    release.send(()).unwrap();
    holder.await.unwrap().unwrap();
    admitted.await.unwrap().unwrap();
}
