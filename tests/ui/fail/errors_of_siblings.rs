use ratelimits::{Error, count_limit, rate_limit, window_limit};

#[rate_limit(rat = 5)]
#[count_limit(limit = 5)]
#[allow(dead_code)]
#[window_limit(5, "1m", kee = id)]
async fn send(id: u64) -> Result<u64, Error> {
    Ok(id)
}

fn main() {}
