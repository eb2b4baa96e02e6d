use ratelimits::{Error, rate_limit};

#[rate_limit(rate = 5, slack = 1%)]
async fn unquoted() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = 0.01)]
async fn a_share() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = plan)]
async fn computed(plan: &str) -> Result<(), Error> {
    Ok(())
}

fn main() {}
