use ratelimits::{Error, rate_limit};

#[rate_limit(5)]
#[count_limit(5, "1m")]
async fn behind() -> Result<(), Error> {
    Ok(())
}

#[limits::count_limit(5, "1m")]
#[rate_limit(5)]
async fn in_front() -> Result<(), Error> {
    Ok(())
}

fn main() {}
