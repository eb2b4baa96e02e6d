use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(limit = 10, period = "1m", cost = 11)]
async fn fixed_window() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "100/min", burst = "3s", cost = 6)]
async fn token_bucket() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "100/min", refill = interval, cost = 101)]
async fn interval_refill() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 1, drain = "1m", cost = 1 + 1)]
async fn leaky_bucket() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 2, drain = "1m", queue, cost = 4)]
async fn queue() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 10, period = "1m", cost = 1000u32)]
async fn sliding_window() -> Result<(), Error> {
    Ok(())
}

fn main() {}
