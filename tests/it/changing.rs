//! Attributes whose numbers change from call to call on one key, and limiters with other numbers on the same keys.

use std::time::{Duration, Instant};

use ratelimits::{
    Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, TokenBucket, funnel_limit, rate_limit,
};

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

const HOUR: Duration = Duration::from_secs(3600);

/// Ten permits that refill too slowly to matter, or as many as given.
fn hourly(burst: u64) -> [Policy; 5] {
    let rate = Rate::new(1, HOUR);
    let bucket = TokenBucket::new(rate).burst(burst);
    [
        bucket.into(),
        bucket.interval_refill().into(),
        LeakyBucket::new(burst, rate).into(),
        LeakyBucket::new(burst - 1, rate).queue().into(),
        FixedWindow::new(burst, HOUR).into(),
    ]
}

#[tokio::test]
async fn limiters_with_other_numbers_share_the_keys() {
    on_each_registry(async |registry, _| {
        for (i, (ten, twelve)) in hourly(10).into_iter().zip(hourly(12)).enumerate() {
            let as_written = registry.limiter(&format!("with-numbers-{i}"), ten).unwrap();
            let raised = as_written.with_numbers(twelve).unwrap();
            assert_eq!((raised.policy(), raised.name()), (twelve, as_written.name()));
            let left = async |expected: [u64; 2]| {
                for (limiter, expected) in [&as_written, &raised].into_iter().zip(expected) {
                    let remaining = limiter.peek("key").await.unwrap().remaining;
                    assert_eq!(remaining, expected, "{ten:?}");
                }
            };
            // A queue lets one call of a key go ahead, and others wait: too long for this test.
            if i == 3 {
                as_written.try_acquire("key", 4).await.unwrap();
                left([6, 8]).await;
                raised.reset("key").await.unwrap();
                left([10, 12]).await;
                continue;
            }
            for _ in 0..4 {
                as_written.try_acquire("key", 1).await.unwrap();
            }
            left([6, 8]).await;
            raised.try_acquire("key", 5).await.unwrap();
            left([1, 3]).await;
            let last = as_written.try_acquire("key", 1).await.unwrap();
            assert!(as_written.try_acquire("key", 1).await.unwrap_err().is_limited());
            left([0, 2]).await;
            last.refund().await.unwrap();
            left([1, 3]).await;
            let prefixed = raised.prefix("with-numbers");
            prefixed.try_acquire("key", 12).await.unwrap();
            // Back to the numbers as written.
            let back = raised.with_numbers(ten).unwrap();
            back.try_acquire("key", 1).await.unwrap();
            left([0, 2]).await;
        }
    })
    .await;
}

#[test]
fn other_numbers_are_of_the_same_algorithm() {
    let limiter = Registry::in_memory().limiter("with-numbers-invalid", hourly(10)[0]).unwrap();
    assert_eq!(limiter.with_numbers(hourly(10)[4]).unwrap_err().argument(), "policy");
    assert_eq!(limiter.with_numbers(TokenBucket::per_second(0)).unwrap_err().argument(), "rate");
}
