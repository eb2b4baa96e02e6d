use ratelimits::{Error, concurrency_limit, rate_limit};

#[concurrency_limit(20, charge_when = |out| out.is_err())]
async fn charge_when() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20, settle = |out| u64::from(out.is_ok()))]
async fn settle() -> Result<u64, Error> {
    Ok(1)
}

#[rate_limit(5.0, pause_when = |_| None)]
#[concurrency_limit(20, pause_when = |_| None)]
async fn pause_when() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20, penalty = ["1m"])]
async fn penalty() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20, lease = 5)]
async fn lease() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20, "1m")]
async fn period() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit]
async fn missing() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(0)]
async fn zero() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20, cost = 21)]
async fn too_large() -> Result<u64, Error> {
    Ok(1)
}

#[concurrency_limit(20)]
async fn opaque() -> impl Sized {}

#[concurrency_limit(20)]
async fn error_in_body() -> Result<u64, Error> {
    let text = "5";
    Ok(text)
}

fn main() {}
