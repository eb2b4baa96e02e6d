use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(limit = 0, period = "1m")]
async fn zero() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = 0)]
async fn zero_burst() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 2 - 5, period = "1m")]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 2_000_000_000_000, drain = "5m")]
async fn too_large() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "1m", cost = -2)]
async fn negative_cost() -> Result<(), Error> {
    Ok(())
}

fn main() {}
