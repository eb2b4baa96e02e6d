#![allow(unused_variables)]

use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(rate = 5, timeout = 200)]
async fn no_unit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "200")]
async fn no_unit_in_quotes() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = 0.2)]
async fn a_fraction() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = -1)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = None)]
async fn none() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = 60, timeout = forever)]
async fn no_quotes() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = 60, timeout = "1s", shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = 10, warmup = "3s")]
async fn warmup_with_a_burst() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = 3.0)]
async fn warmup_with_a_fraction() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = "3s", charge_when = |out| out.is_err())]
async fn warmup_that_gives_back() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5/s", refill = interval, warmup = "3s")]
async fn warmup_at_intervals() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5/s", refill = interval, borrow)]
async fn borrowing_at_intervals() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, queue)]
async fn queue_of_another_attribute() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "1m", queue = true)]
async fn flag_with_a_value() -> Result<(), Error> {
    Ok(())
}

fn main() {}
