use ratelimits::{Error, count_limit, funnel_limit, window_limit};

#[count_limit(limit = 0, period = "1m")]
async fn zero() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 2 - 5, period = "1m")]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = -1, leak_rate = 5)]
async fn negative_capacity() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 0, drain = "5m")]
async fn zero_capacity() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "1m", cost = -2)]
async fn negative_cost() -> Result<(), Error> {
    Ok(())
}

fn main() {}
