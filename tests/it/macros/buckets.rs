//! Buckets that lend, warm up or queue, as far as nobody waits.

use std::time::Duration;

use ratelimits::{
    Error, LeakyBucket, Rate, Registry, TokenBucket, count_limit, funnel_limit, rate_limit, window_limit,
};

use super::{AppError, AppResult, assert_admits_one, assert_limited, isolated};

const HOUR: Duration = Duration::from_secs(3600);

#[rate_limit("1/h", 2, borrow, cost = cost)]
async fn lends(cost: u64) -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/h", borrow, cost = 1_000)]
async fn lends_what_it_never_holds() -> AppResult<()> {
    Ok(())
}

#[rate_limit(rate = rate, borrow, cost = 50)]
async fn lends_at_any_rate(rate: &str) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_costly_call_goes_ahead_and_leaves_its_cost_to_the_next() {
    isolated(async {
        lends(1).await.unwrap();
        lends(5).await.unwrap();
        assert_limited(lends(1).await);
        lends(0).await.unwrap();
        assert_admits_one!(lends_what_it_never_holds(), lends_at_any_rate("1/h"),);
    });
}

#[rate_limit("1/h", warmup = "2h", cost = 1_000)]
async fn warms_up() -> AppResult<()> {
    Ok(())
}

#[rate_limit("1/h", borrow, warmup = warmup)]
async fn warms_up_for(warmup: Duration) -> AppResult<()> {
    Ok(())
}

#[rate_limit(rate = rate, warmup = 7200, name = "buckets.warmup")]
async fn warms_up_to(rate: &str) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_bucket_that_warms_up_lends_too() {
    isolated(async {
        assert_admits_one!(warms_up(), warms_up_for(HOUR),);
        let Err(AppError::Refused(error)) = warms_up_for(Duration::ZERO).await else { panic!("admitted") };
        let message = "`warmup` has no length; write a time above zero, like \"1m\"";
        assert_eq!(error.to_string(), message);
    });
    let registry = Registry::in_memory();
    isolated(registry.clone().scope(async {
        let policy = TokenBucket::new(Rate::new(1, HOUR)).warmup(2 * HOUR);
        warms_up_to("1/h").await.unwrap();
        let limiter = registry.limiter("buckets.warmup", policy).unwrap();
        assert!(limiter.try_acquire((), 1).await.unwrap_err().is_limited());
    }));
}

#[funnel_limit(2, "1/h", queue, timeout = "0s", name = "buckets.queue")]
async fn queues() -> AppResult<()> {
    Ok(())
}

#[funnel_limit(capacity = room, drain = drain, queue, timeout = patience, cost = cost)]
async fn queues_of_any_length(room: u8, drain: &str, patience: &str, cost: u8) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_queue_admits_one_call_at_once() {
    let registry = Registry::in_memory();
    isolated(registry.clone().scope(async {
        let policy = LeakyBucket::new(2, Rate::new(1, HOUR));
        assert_admits_one!(queues());
        let queue = registry.limiter("buckets.queue", policy.queue()).unwrap();
        assert!(queue.try_acquire((), 1).await.unwrap_err().is_limited());
        // A meter of the same name and numbers is another policy.
        registry.limiter("buckets.queue", policy).unwrap().try_acquire((), 2).await.unwrap();

        queues_of_any_length(2, "3h", "0s", 3).await.unwrap();
        assert_limited(queues_of_any_length(2, "3h", "0s", 1).await);
        assert_limited(queues_of_any_length(3, "5h", "0s", 5).await);
    }));
}

#[rate_limit("60/min", name = "buckets.claimed")]
async fn plain() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("60/min", borrow, name = "buckets.claimed")]
async fn lending() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("60/min", warmup = 1, name = "buckets.claimed")]
async fn warming() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("60/min", warmup = 1, name = "buckets.warm")]
async fn warm() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(1.0, warmup = "1000ms", name = "buckets.warm")]
async fn as_warm() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("60/min", warmup = "2s", name = "buckets.warm")]
async fn warmer() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(5, 1.0, name = "buckets.funnel")]
async fn meter() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(5, 1.0, queue, name = "buckets.funnel")]
async fn queue() -> Result<(), Error> {
    Ok(())
}

/// What is said of the name.
fn problem(result: Result<(), Error>) -> String {
    let Err(Error::Invalid(invalid)) = result else { panic!("{result:?}") };
    assert_eq!(invalid.argument(), "name");
    invalid.problem().to_owned()
}

#[test]
fn a_name_is_not_shared_by_variants_of_an_algorithm() {
    isolated(async {
        plain().await.unwrap();
        for (result, words) in [(lending().await, "borrows"), (warming().await, "warms up")] {
            let problem = problem(result);
            assert!(problem.starts_with("`buckets.claimed` is a token bucket at "), "{problem}");
            assert!(problem.contains(&format!(" and a token bucket that {words} at ")), "{problem}");
        }
        meter().await.unwrap();
        let told = problem(queue().await);
        assert!(told.contains(" and a leaky bucket that queues at "), "{told}");
        warm().await.unwrap();
        assert!(as_warm().await.unwrap_err().is_limited());
        let told = problem(warmer().await);
        assert!(told.starts_with("`buckets.warm` has a `warmup` of 1s at "), "{told}");
        assert!(told.contains(" and of 2s at "), "{told}");
    });
}

#[rate_limit("1/h", 1, timeout = patience, key = key)]
async fn patient(key: u8, patience: Duration) -> AppResult<()> {
    Ok(())
}

#[count_limit(1, "1d", timeout = patience)]
async fn patient_by_text(patience: &str) -> AppResult<()> {
    Ok(())
}

#[window_limit(1, "1d", timeout = format!("{millis}ms"), cost = cost)]
async fn patient_in_vain(millis: u8, cost: u8) -> AppResult<()> {
    Ok(())
}

#[test]
fn a_timeout_may_be_computed() {
    isolated(async {
        patient(1, Duration::ZERO).await.unwrap();
        patient(2, Duration::MAX).await.unwrap();
        assert_limited(patient(1, Duration::ZERO).await);
        patient_by_text("forever").await.unwrap();
        assert_limited(patient_by_text("0s").await);
        // More than the window ever has, so nothing is worth the wait.
        assert_limited(patient_in_vain(200, 2).await);
    });
}
