use ratelimits::{Error, rate_limit, window_limit};

#[rate_limit(rate = 5, timeout = 200)]
async fn timeout() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = 60, precision = 1)]
async fn precision() -> Result<(), Error> {
    Ok(())
}

fn main() {}
