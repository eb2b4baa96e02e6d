use ratelimits::{Error, count_limit, funnel_limit, rate_limit};

#[rate_limit(5.0, settle = |_| 1, charge_when = |out| out.is_ok())]
async fn beside_charge_when() -> Result<u64, Error> {
    Ok(1)
}

#[funnel_limit(5, 1, queue, settle = |_| 1)]
async fn beside_queue() -> Result<u64, Error> {
    Ok(1)
}

#[rate_limit(5.0, warmup = "3s", settle = |_| 1)]
async fn beside_warmup() -> Result<u64, Error> {
    Ok(1)
}

#[count_limit(500, "1m", lease = 10, settle = |_| 1)]
async fn beside_lease() -> Result<u64, Error> {
    Ok(1)
}

#[rate_limit(5.0, settle = 7)]
async fn not_a_closure() -> Result<u64, Error> {
    Ok(1)
}

fn main() {}
