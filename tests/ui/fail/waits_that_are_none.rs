//! Times to wait, and numbers of what is waited for, that are wrong as literals or by their type.

#![allow(unused_variables)]

use ratelimits::{Error, count_limit, funnel_limit, rate_limit};

#[count_limit(limit = 5, period = 60, timeout = "0.5s")]
async fn a_fraction() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "for ever")]
async fn no_such_word() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "99999999999999d")]
async fn too_long() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = millis)]
async fn of_a_wrong_type(millis: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = "0s")]
async fn warmup_of_no_time() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = "9999d")]
async fn warmup_without_end() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, warmup = 0)]
async fn warmup_of_any_rate(rate: f64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 0, warmup = warmup)]
async fn rate_of_any_warmup(warmup: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = 0, borrow)]
async fn burst() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 0, drain = "1m", queue)]
async fn line_without_room() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 2, drain = "1m", queue, cost = 4)]
async fn longer_than_the_line() -> Result<(), Error> {
    Ok(())
}

fn main() {}
