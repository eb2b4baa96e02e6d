use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(rate = 5, slack = "1%", lease = 5)]
async fn leases() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "5/s", slack = "1%", refill = interval)]
async fn refills_at_once() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = plan, slack = "1%")]
async fn computed(plan: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", timeout = "1s")]
async fn waits() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", charge_when = |out| out.is_err())]
async fn refunds() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", settle = |out| 1)]
async fn settles() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", bind = decision)]
async fn binds() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", borrow)]
async fn borrows() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", warmup = "3s")]
async fn warms_up() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", pause_when = |out| None)]
async fn pauses() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", penalty = ["1m"])]
async fn penalizes() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "1%", notify_at = 0.8)]
async fn notifies() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m")]
#[rate_limit(rate = 5, slack = "1%")]
async fn several() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 10, period = "1m", slack = "1%")]
async fn fixed_window() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "1m", slack = "1%")]
async fn funnel() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", slack = "1%")]
async fn sliding_window() -> Result<(), Error> {
    Ok(())
}

fn main() {}
