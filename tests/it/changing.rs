//! Attributes whose numbers change from call to call on one key.

use std::time::Instant;

use ratelimits::{Error, Registry, funnel_limit, rate_limit};

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
