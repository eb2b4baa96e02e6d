//! `main` decides before its runtime starts.

#[tokio::main]
#[ratelimits::rate_limit(5)]
async fn main() -> Result<(), ratelimits::Error> {
    Ok(())
}
