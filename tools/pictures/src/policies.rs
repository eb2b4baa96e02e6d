//! The policies of the pictures, as users write them. Each has the name of its picture's file.
#![allow(dead_code, reason = "the functions are there for their attributes")]

use ratelimits::observe::PolicyInfo;
use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

/// Returns the policy of this name.
pub(crate) fn find(name: &str) -> PolicyInfo {
    let found = ratelimits::policies().into_iter().find(|policy| *policy.name == *name);
    found.unwrap_or_else(|| panic!("no function below has a policy of the name {name}"))
}

#[rate_limit(rate = 1.0, burst = 5, name = "token-bucket")]
async fn token_bucket() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "2/2s", burst = 5, refill = interval, name = "interval-refill")]
async fn interval_refill() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 1.0, burst = 5, borrow, name = "borrow")]
async fn borrow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 1.0, warmup = "5s", name = "warm-up")]
async fn warm_up() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "5s", name = "fixed-window")]
async fn fixed_window() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "5s", aligned, name = "aligned-window")]
async fn aligned_window() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "5s", name = "sliding-log")]
async fn sliding_log() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "5s", precision = "1s", name = "sliding-counter")]
async fn sliding_counter() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, leak_rate = 1.0, name = "leaky-meter")]
async fn leaky_meter() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, leak_rate = 1.0, queue, name = "leaky-queue")]
async fn leaky_queue() -> Result<(), Error> {
    Ok(())
}
