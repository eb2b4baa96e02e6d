use ratelimits::{Error, count_limit, rate_limit, window_limit};

#[count_limit(100, "1d", notify_at = 80)]
async fn percent() -> Result<(), Error> {
    Ok(())
}

#[count_limit(100, "1d", notify_at = "80%")]
async fn text() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5.0, notify_at = share)]
async fn computed(share: f64) -> Result<(), Error> {
    Ok(())
}

#[window_limit(100, "1d", notify_at = 1.5)]
async fn more_than_all() -> Result<(), Error> {
    Ok(())
}

#[window_limit(100, "1d", notify_at = 0.0)]
async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5.0, notify_at)]
async fn no_value() -> Result<(), Error> {
    Ok(())
}

fn main() {}
