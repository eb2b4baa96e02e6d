use ratelimits::{Error, rate_limit};

#[rate_limit(5, pause_when = |out| out.as_ref().map_or(0, |seconds| *seconds))]
async fn seconds() -> Result<u64, Error> {
    Ok(2)
}

fn main() {}
