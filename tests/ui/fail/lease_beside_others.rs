use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(rate = 5, lease = 5, timeout = "1s")]
async fn waits() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m", lease = 5, charge_when = |out| out.is_err())]
async fn refunds() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m", lease = 5, shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, lease = 5, borrow)]
async fn borrows() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, lease = 5, warmup = "3s")]
async fn warms_up() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m", lease = 5)]
#[rate_limit(rate = 5)]
async fn several() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m", lease = plan)]
async fn computed(plan: u64) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "1m", lease = 5)]
async fn funnel() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", lease = 5)]
async fn window() -> Result<(), Error> {
    Ok(())
}

fn main() {}
