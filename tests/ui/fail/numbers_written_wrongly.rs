use ratelimits::{Error, count_limit, rate_limit, window_limit};

#[rate_limit(rate = 1 / 60, burst = 2.5)]
async fn divided() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5.5, period = 0.5, cost = "1")]
async fn fractions() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = 60, precision = 1)]
async fn no_unit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, refill = interval)]
async fn no_period() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5/s", refill = greedy)]
async fn no_refill() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = "5")]
async fn no_unit_either() -> Result<(), Error> {
    Ok(())
}

fn main() {}
