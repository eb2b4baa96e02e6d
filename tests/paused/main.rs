//! With the feature `test-util`: limits on tokio's clock, paused, exact to the microsecond and apart for each test.

mod absent;
mod attributes;
mod bound;
mod calls;
mod deadlines;
mod disturbed;
mod drops;
mod edges;
mod events;
mod faulty;
#[path = "../it/support/random.rs"]
mod random;
mod stacks;
#[expect(dead_code, reason = "not all that it can is asked here")]
#[path = "../it/support/told.rs"]
mod told;
mod windows;
#[cfg(not(feature = "tls"))]
mod without_tls;

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

/// Takes both permits, and is told the truth about the third.
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
    a_bucket_waits_for_one_permit: bucket, Duration::from_millis(500);
    a_bucket_of_another_test_is_another: bucket, Duration::from_millis(500);
    a_window_waits_for_its_end: window, Duration::from_secs(60);
    a_funnel_waits_for_a_leak: funnel, Duration::from_secs(1);
    a_sliding_window_waits_for_its_oldest: sliding, Duration::from_secs(60);
}

#[tokio::test(start_paused = true)]
async fn the_first_decision_of_a_registry_is_at_time_0() {
    advance(Duration::from_secs(7)).await;
    let registry = Registry::in_memory();
    let limiter =
        registry.limiter("aligned", FixedWindow::new(1, Duration::from_secs(60)).aligned()).unwrap();
    assert_eq!(limiter.try_acquire((), 1).await.unwrap().reset_after, Duration::from_secs(60));
    advance(Duration::from_secs(59)).await;
    assert_eq!(limiter.peek(()).await.unwrap().reset_after, Duration::from_secs(1));
}
