use std::time::Duration;

use ratelimits::{Error, rate_limit};

#[rate_limit(5, lease = 10, pause_when = |_| Duration::from_secs(1))]
async fn leased() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5, pause_when = Duration::from_secs(1))]
async fn always() -> Result<(), Error> {
    Ok(())
}

fn main() {}
