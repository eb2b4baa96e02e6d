use ratelimits::{Error, rate_limit};

#[rate_limit(rate = 1 / 60)]
async fn divided() -> Result<(), Error> {
    Ok(())
}

fn main() {}
