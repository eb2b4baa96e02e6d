use ratelimits::{Error, concurrency_limit, count_limit, rate_limit};

#[concurrency_limit(20, notify_at = 0.8)]
async fn held() -> Result<(), Error> {
    Ok(())
}

#[count_limit(100, "1d", lease = 10, notify_at = 0.8)]
async fn leased() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5.0, warmup = "3s", notify_at = 0.8)]
async fn warming_up() -> Result<(), Error> {
    Ok(())
}

fn main() {}
