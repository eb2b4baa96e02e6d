//! Concurrency limits: permits that are held until a call ends.

mod attributes;
mod clocks;
mod endings;
mod failover;
mod functions;
mod in_process;
mod in_redis;
mod inventory;
mod killed;
mod observed;
#[cfg(feature = "overrides")]
mod operating;
#[cfg(feature = "test-util")]
mod random;
mod reported;
mod turns;

use std::time::Duration;

use ratelimits::Limiter;

use crate::support::until::until;

/// Within which what ends is known to be free.
const SOON: Duration = Duration::from_secs(10);

/// Waits until so many permits of this key remain. In process they do at once, and in Redis soon.
async fn until_remain(limiter: &Limiter, key: &str, expected: u64) {
    until("the permits are as they should be", SOON, async || {
        let remaining = limiter.peek(key).await.map_err(|error| error.to_string())?.remaining;
        if remaining == expected { Ok(()) } else { Err(format!("{remaining} remain, not {expected}")) }
    })
    .await;
}
