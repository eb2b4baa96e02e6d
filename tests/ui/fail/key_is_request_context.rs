use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(5, "1m", key = IP)]
async fn by_ip() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5, key = USER)]
async fn by_user() -> Result<(), Error> {
    Ok(())
}

fn main() {}
