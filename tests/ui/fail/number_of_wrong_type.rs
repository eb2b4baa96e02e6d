#![allow(unused_variables)]

use ratelimits::{Error, count_limit, rate_limit, window_limit};

#[count_limit(limit = name, period = 60)]
async fn count(name: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = 'x')]
async fn period() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = ())]
async fn rate() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = true)]
async fn burst() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", precision = seconds)]
async fn precision(seconds: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = millis)]
async fn timeout(millis: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
