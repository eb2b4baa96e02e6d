use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(limit = 5, period = 15m)]
async fn period() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = forever)]
async fn timeout() -> Result<(), Error> {
    Ok(())
}

fn main() {}
