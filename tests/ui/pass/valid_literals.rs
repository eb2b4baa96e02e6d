//! Valid literals beside computed numbers, and costs that the policy can admit.

#![deny(warnings)]
#![allow(non_snake_case)]

use std::time::Duration;

use ratelimits::{Error, Rate, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(limit = 1_000_000_000_000, period = period, cost = 1_000_000_000_000)]
async fn limit(period: Duration) -> Result<(), Error> {
    let _ = period;
    Ok(())
}

#[rate_limit(rate = rate, burst = 1_000_000_000_000)]
async fn burst(rate: Rate) -> Result<(), Error> {
    let _ = rate;
    Ok(())
}

#[rate_limit(rate = rate, burst = "3650d", refill = interval)]
async fn burst_for(rate: Rate) -> Result<(), Error> {
    let _ = rate;
    Ok(())
}

#[rate_limit(rate = "1/3650d", burst = LIMIT)]
async fn rate(LIMIT: u8) -> Result<(), Error> {
    let _ = LIMIT;
    Ok(())
}

#[rate_limit(rate = 0.1 + 0.2, burst = 3)]
async fn sum_of_floats() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 1_000_000_000_000, drain = drain, cost = 1)]
async fn capacity(drain: u32) -> Result<(), Error> {
    let _ = drain;
    Ok(())
}

#[funnel_limit(capacity = capacity, drain = "3650d")]
async fn drain(capacity: u8) -> Result<(), Error> {
    let _ = capacity;
    Ok(())
}

#[window_limit(limit = 1_000_000, period = period, precision = "1825d")]
async fn counter(period: Duration) -> Result<(), Error> {
    let _ = period;
    Ok(())
}

#[window_limit(limit = 20_000, period = "1h", precision = precision)]
async fn precision(precision: &str) -> Result<(), Error> {
    let _ = precision;
    Ok(())
}

#[rate_limit(rate = "100/min", burst = "3s", cost = 5)]
async fn cost() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "1/min", burst = 2, borrow, cost = 1_000_000)]
async fn borrowed() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, warmup = "3650d", borrow, cost = 1_000_000)]
async fn warmup(rate: Rate) -> Result<(), Error> {
    let _ = rate;
    Ok(())
}

#[rate_limit(rate = 5, warmup = WARMUP, cost = 6, timeout = "forever")]
async fn warmup_of_the_call(WARMUP: u64) -> Result<(), Error> {
    let _ = WARMUP;
    Ok(())
}

#[funnel_limit(capacity = 2, drain = "1m", queue, cost = 3, timeout = "0s")]
async fn whole_queue() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = 60, timeout = Duration::MAX)]
async fn as_long_as_it_takes() -> Result<(), Error> {
    Ok(())
}

fn main() {
    let second = Duration::from_secs(1);
    let rate_of_one = Rate::per_second(1);
    let _ = (limit(second), burst(rate_of_one), burst_for(rate_of_one), rate(1), sum_of_floats());
    let _ = (capacity(1), drain(1));
    let _ = (counter(second), precision("1s"), cost());
    let _ = (borrowed(), warmup(rate_of_one), warmup_of_the_call(3), whole_queue(), as_long_as_it_takes());
}
