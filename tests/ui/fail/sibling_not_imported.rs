use ratelimits::{Error, rate_limit};

#[rate_limit(5)]
#[count_limit(5, "1m")]
async fn after() -> Result<(), Error> {
    Ok(())
}

#[limits::count_limit(5, "1m")]
#[rate_limit(5)]
async fn before() -> Result<(), Error> {
    Ok(())
}

fn main() {}
