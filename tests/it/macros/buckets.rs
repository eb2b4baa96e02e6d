//! Buckets that borrow, warm up or queue; without waiting, for which see `tests/paused`.

use std::time::Duration;

use ratelimits::{
    LeakyBucket, Rate, Registry, TokenBucket, count_limit, funnel_limit, rate_limit, window_limit,
};

use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

const HOUR: Duration = Duration::from_secs(3600);

limited! {
    #[rate_limit("1/h", 2, borrow, cost = cost)]
    borrows(cost: u64);
    #[rate_limit("1/h", borrow, cost = 1_000)]
    borrows_more_than_it_holds();
    #[rate_limit(rate = rate, borrow, cost = 50)]
    borrows_at_any_rate(rate: &str);
}

#[test]
fn borrowing_defers_the_cost() {
    isolated(async {
        borrows(1).await.unwrap();
        borrows(5).await.unwrap();
        assert_limited(borrows(1).await);
        borrows(0).await.unwrap();
        assert_admits_one!(borrows_more_than_it_holds(), borrows_at_any_rate("1/h"));
    });
}

limited! {
    #[rate_limit(rate = 1.0 / 60.0, burst = 60)]
    bursts_of_permits();
    #[rate_limit(rate = 1.0 / 60.0, burst = "60s")]
    bursts_of_seconds();
    #[rate_limit("5 per 10 minutes", burst = "1 hour")]
    bursts_in_words();
}

#[test]
fn a_bare_burst_is_permits() {
    isolated(async {
        for _ in 0..60 {
            bursts_of_permits().await.unwrap();
        }
        assert_limited(bursts_of_permits().await);
        assert_admits_one!(bursts_of_seconds());
        for _ in 0..30 {
            bursts_in_words().await.unwrap();
        }
        assert_limited(bursts_in_words().await);
    });
}

limited! {
    #[rate_limit("1/h", warmup = "2h", cost = 1_000)]
    warms_up();
    #[rate_limit("1/h", borrow, warmup = warmup)]
    warms_up_for(warmup: Duration);
    #[rate_limit(rate = rate, warmup = 7200, name = "buckets.warmup")]
    warms_up_to(rate: &str);
}

#[test]
fn warming_up_bucket_borrows() {
    isolated(async {
        assert_admits_one!(warms_up(), warms_up_for(HOUR));
        let Err(AppError::Refused(error)) = warms_up_for(Duration::ZERO).await else { panic!("admitted") };
        let message = "`warmup` is zero; write a duration above zero, like \"1m\"";
        assert_eq!(error.to_string(), message);
    });
    let registry = Registry::in_memory();
    isolated(registry.clone().scope(async {
        let policy = TokenBucket::new(Rate::new(1, HOUR)).warmup(2 * HOUR).adjustable();
        warms_up_to("1/h").await.unwrap();
        let limiter = registry.limiter("buckets.warmup", policy).unwrap();
        assert!(limiter.try_acquire(()).await.unwrap_err().is_limited());
    }));
}

limited! {
    #[funnel_limit(2, "1/h", queue, timeout = "0s", name = "buckets.queue")]
    queues();
    #[funnel_limit(capacity = capacity, drain = drain, queue, timeout = max_wait, cost = cost)]
    queues_of_computed_length(capacity: u8, drain: &str, max_wait: &str, cost: u8);
}

#[test]
fn queue_admits_one_call_at_once() {
    let registry = Registry::in_memory();
    isolated(registry.clone().scope(async {
        let policy = LeakyBucket::new(2, Rate::new(1, HOUR));
        assert_admits_one!(queues());
        let queue = registry.limiter("buckets.queue", policy.queue()).unwrap();
        assert!(queue.try_acquire(()).await.unwrap_err().is_limited());
        // A meter with the same name and numbers has its separate state.
        registry.limiter("buckets.queue", policy).unwrap().try_acquire_n((), 2).await.unwrap();

        queues_of_computed_length(2, "3h", "0s", 3).await.unwrap();
        assert_limited(queues_of_computed_length(2, "3h", "0s", 1).await);
        assert_limited(queues_of_computed_length(3, "5h", "0s", 5).await);
    }));
}

limited! {
    #[rate_limit("1/h", 1, timeout = max_wait, key = key)]
    timeout_as_duration(key: u8, max_wait: Duration);
    #[count_limit(1, "1d", timeout = max_wait)]
    timeout_as_string(max_wait: &str);
    #[window_limit(1, "1d", timeout = format!("{millis}ms"), cost = cost)]
    unsatisfiable(millis: u8, cost: u8);
}

#[test]
fn computed_timeouts() {
    isolated(async {
        timeout_as_duration(1, Duration::ZERO).await.unwrap();
        timeout_as_duration(2, Duration::MAX).await.unwrap();
        assert_limited(timeout_as_duration(1, Duration::ZERO).await);
        timeout_as_string("forever").await.unwrap();
        assert_limited(timeout_as_string("0s").await);
        // Refused at once: the window never holds two.
        assert_limited(unsatisfiable(200, 2).await);
    });
}
