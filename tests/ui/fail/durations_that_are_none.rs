use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[count_limit(limit = 5, period = 0)]
async fn zero() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = -60)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "1 fortnight")]
async fn wrong_unit() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "30")]
async fn no_unit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = "5x")]
async fn burst_with_a_wrong_unit() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", precision = "7s")]
async fn does_not_divide() -> Result<(), Error> {
    Ok(())
}

fn main() {}
