use ratelimits::{Error, count_limit, funnel_limit, rate_limit};

#[count_limit(5, "15m", penalty = "1m")]
async fn no_list() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", penalty = [])]
async fn empty() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", penalty = ["1m", 300])]
async fn without_a_unit() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", penalty = ["1m", "5 minuets"])]
async fn unknown_unit() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", penalty = ["5m", "1m"])]
async fn shorter() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", penalty = ["1m", "400d"])]
async fn too_long() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "month", penalty = ["1h", "2d"])]
async fn of_a_calendar() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "15m", shadow, penalty = ["1m"])]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("5/s", lease = 10, penalty = ["1m"])]
async fn leased() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(5, "5/s", queue, penalty = ["1m"])]
async fn queued() -> Result<(), Error> {
    Ok(())
}

fn main() {}
