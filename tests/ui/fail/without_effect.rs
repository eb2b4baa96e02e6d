use ratelimits::{Error, count_limit, rate_limit};

#[rate_limit(rate = 5, cost = 0)]
async fn free() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", timeout = "0s")]
async fn waits_for_nothing() -> Result<(), Error> {
    Ok(())
}

fn main() {}
