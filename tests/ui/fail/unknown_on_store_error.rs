use ratelimits::{Error, rate_limit};

#[rate_limit(rate = 5, on_store_error = "deny")]
async fn quoted() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, on_store_error = fail_open)]
async fn unknown() -> Result<(), Error> {
    Ok(())
}

fn main() {}
