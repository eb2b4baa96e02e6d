use ratelimits::{Error, count_limit};

#[count_limit(5, "1m", charge_when = |out| out.is_some())]
async fn output() -> Result<u64, Error> {
    Ok(1)
}

#[count_limit(5, "1m", charge_when = |out| out.unwrap_or(0))]
async fn condition() -> Result<u64, Error> {
    Ok(1)
}

fn main() {}
