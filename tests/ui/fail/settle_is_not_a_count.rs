use ratelimits::{Error, rate_limit};

#[rate_limit(5.0, settle = |out| out.as_ref().map_or(0.0, |_| 1.5))]
async fn fractions() -> Result<u64, Error> {
    Ok(1)
}

#[rate_limit(5.0, settle = |out: &Result<u64, Error>| out.as_ref().ok())]
async fn options() -> Result<u64, Error> {
    Ok(1)
}

fn main() {}
