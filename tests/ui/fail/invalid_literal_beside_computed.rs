#![allow(unused_variables)]

use std::time::Duration;

use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(limit = 0, period = period)]
async fn limit(period: Duration) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "9999d")]
async fn period(limit: u32) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "30000/s", burst = burst)]
async fn rate(burst: u32) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, burst = 0)]
async fn burst(rate: f64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, warmup = 0)]
async fn warmup(rate: f64) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 2_000_000_000_000, drain = drain)]
async fn capacity(drain: Duration) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = capacity, drain = "0s")]
async fn drain(capacity: u32) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 20_000, period = period)]
async fn log(period: Duration) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = limit, period = "1m", precision = "7s")]
async fn precision(limit: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
