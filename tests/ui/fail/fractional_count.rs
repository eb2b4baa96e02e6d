use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(limit = 5.5, period = 60)]
async fn limit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = 2.5)]
async fn burst() -> Result<(), Error> {
    Ok(())
}

fn main() {}
