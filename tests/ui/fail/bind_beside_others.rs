use ratelimits::{Error, count_limit, rate_limit};

#[rate_limit(5.0, bind = decision, settle = |_| 1)]
async fn beside_settle() -> Result<u64, Error> {
    Ok(decision.remaining)
}

#[rate_limit(5.0, bind = decision)]
#[count_limit(5, 60, charge_when = |out| out.is_ok())]
async fn beside_charge_when() -> Result<u64, Error> {
    Ok(decision.remaining)
}

#[rate_limit(5.0, bind = decision)]
#[count_limit(5, 60, bind = other)]
async fn twice() -> Result<u64, Error> {
    Ok(decision.remaining)
}

#[rate_limit(5.0, bind = user)]
async fn argument(user: u64) -> Result<u64, Error> {
    Ok(user)
}

#[rate_limit(5.0, bind = "decision")]
async fn text() -> Result<u64, Error> {
    Ok(1)
}

fn main() {}
