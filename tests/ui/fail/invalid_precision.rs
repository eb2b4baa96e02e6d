use ratelimits::{Error, window_limit};

#[window_limit(limit = 5, period = "1m", precision = "7s")]
async fn does_not_divide() -> Result<(), Error> {
    Ok(())
}

fn main() {}
