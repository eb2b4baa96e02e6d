//! Functions with attributes, for what limiters do not have.

use std::time::Duration;

use ratelimits::{Error, Rate, Registry, count_limit, rate_limit};

use super::target::{Kind, Target};

/// How long each penalty in turn takes, as the attributes have them.
pub(super) const PENALTIES: [Duration; 3] =
    [Duration::from_millis(300), Duration::from_millis(700), Duration::from_secs(2)];

#[rate_limit("100/s", 20, key = key, cost = cost, name = "leased-bucket", lease = 5, registry = registry)]
async fn leased_bucket(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(20, "500ms", key = key, cost = cost, name = "leased-window", lease = 5, registry = registry)]
async fn leased_window(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("100/s", 100, key = key, cost = cost, name = "slack", slack = "5%", registry = registry)]
async fn slack(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("20/s", 3, key = key, cost = cost, name = "penalized-bucket", penalty = ["300ms", "700ms", "2s"], registry = registry)]
async fn penalized_bucket(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(3, "200ms", key = key, cost = cost, name = "penalized-window", penalty = ["300ms", "700ms", "2s"], registry = registry)]
async fn penalized_window(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("20/s", 5, key = key, cost = cost, name = "notified-bucket", notify_at = 0.8, registry = registry)]
async fn notified_bucket(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "300ms", key = key, cost = cost, name = "notified-window", notify_at = 0.8, registry = registry)]
async fn notified_window(registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

/// Never called itself: its limiters have the numbers of their calls.
#[expect(dead_code, reason = "limiters have its name")]
#[rate_limit(rate = rate, burst = burst, key = key, name = "changing", registry = registry)]
async fn changing(registry: &Registry, key: u64, rate: Rate, burst: u64) -> Result<(), Error> {
    Ok(())
}

#[expect(dead_code, reason = "limiters have its name")]
#[rate_limit(rate = rate, burst = burst, key = key, name = "settled", settle = |_| 1, registry = registry)]
async fn settled(registry: &Registry, key: u64, rate: Rate, burst: u64) -> Result<(), Error> {
    Ok(())
}

impl Target {
    /// Calls the function.
    pub(super) async fn call(&self, registry: &Registry, key: u64, cost: u64) -> Result<(), Error> {
        match self.kind {
            Kind::LeasedBucket => leased_bucket(registry, key, cost).await,
            Kind::LeasedWindow => leased_window(registry, key, cost).await,
            Kind::Slack => slack(registry, key, cost).await,
            Kind::PenalizedBucket => penalized_bucket(registry, key, cost).await,
            Kind::PenalizedWindow => penalized_window(registry, key, cost).await,
            Kind::NotifiedBucket => notified_bucket(registry, key, cost).await,
            Kind::NotifiedWindow => notified_window(registry, key, cost).await,
            kind => unreachable!("{kind:?} is no function"),
        }
    }
}
