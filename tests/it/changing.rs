//! Attributes whose numbers change from call to call on one key.

use std::time::{Duration, Instant};

use ratelimits::{Error, Rate, Registry, TokenBucket, count_limit, funnel_limit, rate_limit, window_limit};

use crate::support::random::Random;
use crate::support::registries::on_each_registry;

const LARGEST_BURST: u64 = 19;
const LARGEST_RATE: u64 = 10;

#[rate_limit(rate = rate, burst = burst, key_type = METHOD, registry = registry)]
async fn token_bucket(registry: &Registry, rate: u64, burst: u64) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = capacity, leak_rate = rate, key_type = METHOD, registry = registry)]
async fn leaky_bucket(registry: &Registry, rate: u64, capacity: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = format!("{refill}/1s"), burst = burst, refill = interval, key_type = METHOD, registry = registry)]
async fn interval_refill(registry: &Registry, refill: u64, burst: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = period, key_type = METHOD, registry = registry)]
async fn fixed_window(registry: &Registry, limit: u64, period: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = limit, period = period, key_type = METHOD, registry = registry)]
async fn sliding_log(registry: &Registry, limit: u64, period: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = limit, period = "1d", precision = precision, key_type = METHOD, registry = registry)]
async fn counter(registry: &Registry, limit: u64, precision: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = format!("1/{period}"), burst = burst, refill = interval, key_type = METHOD, registry = registry)]
async fn intervals(registry: &Registry, burst: u64, period: &str) -> Result<(), Error> {
    Ok(())
}

/// Makes calls with each burst and rate in turn, and returns how many were admitted and how many the largest numbers allow.
async fn admitted(call: impl AsyncFn(u64, u64) -> Result<(), Error>) -> (u64, u64) {
    let mut random = Random::seeded();
    let (start, mut admitted) = (Instant::now(), 0);
    for burst in 10..=LARGEST_BURST {
        for _ in 0..burst {
            let rate = random.between(1, LARGEST_RATE);
            admitted += u64::from(call(rate, burst).await.is_ok());
        }
    }
    let refilled = LARGEST_RATE as f64 * start.elapsed().as_secs_f64();
    (admitted, LARGEST_BURST + refilled as u64 + 1)
}

#[tokio::test]
async fn changing_bursts_and_rates_grant_no_fresh_burst() {
    on_each_registry(async |registry, _| {
        for (admitted, allowed) in [
            admitted(async |rate, burst| token_bucket(&registry, rate, burst).await).await,
            admitted(async |rate, burst| leaky_bucket(&registry, rate, burst).await).await,
        ] {
            assert!((LARGEST_BURST..=allowed).contains(&admitted), "{admitted} of {allowed}");
        }
        let (admitted, allowed) =
            admitted(async |rate, burst| interval_refill(&registry, rate, burst).await).await;
        // A whole refill comes at once.
        assert!((LARGEST_BURST..=allowed + LARGEST_RATE).contains(&admitted), "{admitted} of {allowed}");
    })
    .await;
}

/// Makes calls with two limits, in two states if their other number is the same for all calls of one.
async fn assert_two_states([one, other]: [&str; 2], call: impl AsyncFn(u64, &str) -> Result<(), Error>) {
    for limit in [1, 2] {
        for number in [one, other] {
            call(limit, number).await.unwrap_or_else(|error| panic!("{limit} in {number}: {error}"));
        }
        for number in [other, one] {
            assert!(call(limit, number).await.unwrap_err().is_limited(), "{limit} in {number}");
        }
    }
}

#[tokio::test]
async fn other_periods_have_their_own_states_and_other_limits_do_not() {
    on_each_registry(async |registry, _| {
        let periods = ["1d", "2d"];
        assert_two_states(periods, async |limit, period| fixed_window(&registry, limit, period).await).await;
        assert_two_states(periods, async |limit, period| sliding_log(&registry, limit, period).await).await;
        assert_two_states(periods, async |burst, period| intervals(&registry, burst, period).await).await;
        assert_two_states(["1h", "2h"], async |limit, precision| counter(&registry, limit, precision).await)
            .await;
    })
    .await;
}

#[tokio::test]
async fn charges_after_other_refunds_are_refunded_in_full() {
    let policy = TokenBucket::new(Rate::new(1, Duration::from_secs(200))).burst(10).adjustable();
    on_each_registry(async |registry, _| {
        let limiter = registry.limiter("changing.refunds", policy).unwrap();
        let earlier = limiter.try_acquire_n("ann", 2).await.unwrap();
        limiter.try_acquire("ann").await.unwrap();
        earlier.refund().await.unwrap();
        let later = limiter.try_acquire_n("ann", 5).await.unwrap();
        assert_eq!(later.remaining, 4);
        later.refund().await.unwrap();
        assert_eq!(limiter.peek("ann").await.unwrap().remaining, 9);
    })
    .await;
}
