use ratelimits::{Error, rate_limit};

#[rate_limit(5.0 shadow)]
async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5.0; burst = 10)]
async fn semicolon() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate: 5.0)]
async fn colon() -> Result<(), Error> {
    Ok(())
}

fn main() {}
