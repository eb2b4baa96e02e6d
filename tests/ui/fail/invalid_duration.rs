use ratelimits::{Error, count_limit, funnel_limit, rate_limit};

#[count_limit(limit = 5, period = 0)]
async fn zero() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = -60)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = "1 fortnight")]
async fn unknown_unit() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "1h30")]
async fn no_unit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, burst = "0s")]
async fn zero_burst() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = "9999d")]
async fn too_long() -> Result<(), Error> {
    Ok(())
}

fn main() {}
