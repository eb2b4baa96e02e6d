use ratelimits::{Error, funnel_limit, rate_limit};

#[rate_limit(rate = 0)]
async fn zero() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = -5)]
async fn negative() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = -5.0)]
async fn negative_float() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 0.0 / 0.0)]
async fn not_a_number() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, leak_rate = 1.0 / 0.0)]
async fn infinite() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5 per month")]
async fn malformed() -> Result<(), Error> {
    Ok(())
}

fn main() {}
