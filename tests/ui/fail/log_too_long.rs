use ratelimits::{Error, window_limit};

#[window_limit(limit = 10_001, period = "1h")]
async fn send() -> Result<(), Error> {
    Ok(())
}

fn main() {}
