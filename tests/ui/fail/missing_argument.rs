use ratelimits::{Error, funnel_limit, rate_limit};

#[rate_limit]
async fn rate() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit]
async fn funnel() -> Result<(), Error> {
    Ok(())
}

fn main() {}
