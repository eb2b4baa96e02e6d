#![allow(unused_variables)]

use ratelimits::{Error, count_limit, funnel_limit, rate_limit};

#[count_limit(limt = 5, period, aligned = true, zzz, 5 + 5)]
async fn unknown() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", limit = 6, "1h" aligned)]
async fn doubled() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", 7 + 1, key = , name = "", prefix = sms)]
async fn empty() -> Result<(), Error> {
    Ok(())
}

#[rate_limit]
async fn missing() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit]
async fn missing_both() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(5, 5, drain = "1m")]
async fn one_too_many() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate: 5, burst(10), aligned)]
async fn assigned_otherwise() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", user.id)]
async fn third(user: User) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rte = 5)]
async fn mistyped() -> Result<(), Error> {
    Ok(())
}

struct User {
    id: u64,
}

fn main() {}
