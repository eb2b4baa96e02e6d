use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(limit = 10, period = "1m", lease = 11)]
async fn fixed_window() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "100/min", burst = "3s", lease = 6)]
async fn token_bucket() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, lease = 0)]
async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, lease = -1)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

fn main() {}
