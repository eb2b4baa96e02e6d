//! The feature `test-util`: limits follow tokio's paused clock, exact to the microsecond and separate for each test.

mod attributes;
mod batches;
mod blocking;
#[path = "../it/support/budget.rs"]
mod budget;
mod concurrent;
mod deadlines;
mod denials;
mod dropped_waiters;
mod events;
mod failing;
mod faulty_server;
mod functions;
mod guide;
mod holds;
mod late_polls;
mod leases;
#[expect(dead_code, reason = "used in part")]
#[path = "../it/support/log_capture.rs"]
mod log_capture;
mod mirrored;
mod near;
mod pauses;
mod penalties;
#[path = "../it/support/random.rs"]
mod random;
mod rate_bound;
mod refunds;
mod simulate;
mod simulation;
mod stacks;
mod store_down;
mod store_events;
mod suggestions;
mod wait_limits;
mod window_queue;
#[cfg(not(feature = "tls"))]
mod without_tls;
mod yielding;

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Registry, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::time::advance;

#[rate_limit(rate = 2.0, burst = 2)]
async fn bucket() -> Result<(), Error> {
    Ok(())
}

#[count_limit(2, "1m")]
async fn window() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(2, "1/s")]
async fn funnel() -> Result<(), Error> {
    Ok(())
}

#[window_limit(2, "1m")]
async fn sliding() -> Result<(), Error> {
    Ok(())
}

/// Takes both permits; `retry_after` of a third is exact.
macro_rules! exact {
    ($($test:ident: $function:ident, $wait:expr;)*) => {$(
        #[tokio::test(start_paused = true)]
        async fn $test() {
            $function().await.unwrap();
            $function().await.unwrap();
            let wait = $function().await.unwrap_err().retry_after().unwrap();
            assert_eq!(wait, $wait);
            advance(wait - Duration::from_micros(1)).await;
            assert_eq!($function().await.unwrap_err().retry_after(), Some(Duration::from_micros(1)));
            advance(Duration::from_micros(1)).await;
            $function().await.unwrap();
        }
    )*};
}
exact! {
    bucket_refills_one_permit: bucket, Duration::from_millis(500);
    bucket_is_separate_in_another_test: bucket, Duration::from_millis(500);
    fixed_window_ends: window, Duration::from_secs(60);
    funnel_leaks_one_permit: funnel, Duration::from_secs(1);
    sliding_window_drops_its_oldest: sliding, Duration::from_secs(60);
}

#[tokio::test(start_paused = true)]
async fn first_decision_of_a_registry_is_at_time_zero() {
    advance(Duration::from_secs(7)).await;
    let registry = Registry::in_memory();
    let policy = FixedWindow::new(1, Duration::from_secs(60)).aligned();
    let limiter = registry.limiter("aligned", policy).unwrap();
    assert_eq!(limiter.try_acquire(()).await.unwrap().reset_after, Duration::from_secs(60));
    advance(Duration::from_secs(59)).await;
    assert_eq!(limiter.peek(()).await.unwrap().reset_after, Duration::from_secs(1));
}
