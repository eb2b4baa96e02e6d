use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(rate = 5.0, burst = "10")]
async fn burst() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5")]
async fn rate() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "60")]
async fn period() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "30")]
async fn drain() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", precision = "1")]
async fn precision() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "5")]
async fn timeout() -> Result<(), Error> {
    Ok(())
}

fn main() {}
