//! `notify_at`, over several windows.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::observe::CallOutcome;
use ratelimits::{Error, Registry, count_limit, funnel_limit, rate_limit, window_limit};
use tokio::time::advance;

const SECOND: Duration = Duration::from_secs(1);

/// How often a registry has told of a key.
#[derive(Clone, Debug, Default)]
struct Told(Arc<Mutex<usize>>);

impl Told {
    fn registry(&self) -> Registry {
        let told = Arc::clone(&self.0);
        let observer = move |seen: &ratelimits::observe::Observation<'_>| {
            *told.lock().unwrap() += usize::from(seen.outcome == CallOutcome::NearLimit);
        };
        Registry::builder().observer(observer).in_memory()
    }

    fn take(&self) -> usize {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

#[count_limit(10, "1m", notify_at = 0.8, registry = registry)]
async fn window(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(10, "1m", aligned, notify_at = 0.8, charge_when = |_| charge, registry = registry)]
async fn aligned(registry: &Registry, charge: bool) -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

#[count_limit(10, "1m", cost = 1, notify_at = 0.8, settle = |_| used, registry = registry)]
async fn settled(registry: &Registry, used: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn each_window_is_told() {
    let told = Told::default();
    let registry = told.registry();
    for _ in 0..5 {
        for expected in [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0] {
            _ = window(&registry).await;
            assert_eq!(told.take(), expected);
        }
        advance(60 * SECOND).await;
    }
}

#[tokio::test(start_paused = true)]
async fn aligned_windows_that_refunds_empty_are_not_told_again() {
    let told = Told::default();
    let registry = told.registry();
    for _ in 0..3 {
        for round in 0..3 {
            // All of them are charged before the first one ends.
            let calls = (0..12).map(|_| aligned(&registry, round == 2));
            let results = futures_util::future::join_all(calls).await;
            assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 10);
            advance(SECOND).await;
        }
        assert_eq!(told.take(), 1);
        advance(57 * SECOND).await;
    }
}

/// The next two windows pay what is owed.
#[tokio::test(start_paused = true)]
async fn windows_that_begin_with_a_debt_are_told_by_the_first_call() {
    let told = Told::default();
    let registry = told.registry();
    settled(&registry, 29).await.unwrap();
    assert_eq!(told.take(), 0);
    for expected in [true, true, true] {
        for _ in 0..3 {
            _ = settled(&registry, 1).await;
        }
        assert_eq!(told.take() == 1, expected);
        advance(60 * SECOND).await;
    }
    settled(&registry, 1).await.unwrap();
    assert_eq!(told.take(), 0);
}

#[rate_limit("1/s", 10, notify_at = 0.8, registry = registry)]
async fn bucket(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(10, drain = "10s", notify_at = 0.8, registry = registry)]
async fn meter(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[window_limit(10, "10s", notify_at = 0.8, registry = registry)]
async fn log(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

/// From empty to full they take ten seconds.
#[tokio::test(start_paused = true)]
async fn what_refills_is_told_once_in_the_time_that_it_takes() {
    async fn tells(call: impl AsyncFn(&Registry) -> Result<(), Error>) {
        let told = Told::default();
        let registry = told.registry();
        for _ in 0..8 {
            call(&registry).await.unwrap();
        }
        assert_eq!(told.take(), 1);
        // It stays near its limit.
        for second in 1..=35 {
            advance(SECOND).await;
            _ = call(&registry).await;
            assert_eq!(told.take(), usize::from(second % 10 == 0), "{second}");
        }
        // It has filled up.
        advance(20 * SECOND).await;
        for expected in [0, 0, 0, 0, 0, 0, 0, 1, 0] {
            call(&registry).await.unwrap();
            assert_eq!(told.take(), expected);
        }
    }
    tells(async |registry| bucket(registry).await).await;
    tells(async |registry| meter(registry).await).await;
}

/// A log has its calls back all at once.
#[tokio::test(start_paused = true)]
async fn what_slides_is_told_once_in_a_period() {
    let told = Told::default();
    let registry = told.registry();
    for _ in 0..3 {
        for expected in [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0] {
            _ = log(&registry).await;
            assert_eq!(told.take(), expected);
        }
        advance(10 * SECOND).await;
    }
}

#[funnel_limit(4, "1/s", queue, notify_at = 0.6, registry = registry)]
async fn queue(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

/// Of five slots, the third call that comes at once takes the third.
#[tokio::test(start_paused = true)]
async fn long_queues_are_told() {
    let told = Told::default();
    let registry = told.registry();
    for (calls, expected) in [(2, 0), (3, 1), (5, 1)] {
        let calls = (0..calls).map(|_| queue(&registry));
        assert!(futures_util::future::join_all(calls).await.iter().all(Result::is_ok));
        assert_eq!(told.take(), expected);
        advance(10 * SECOND).await;
    }
}
