use ratelimits::{Error, count_limit, rate_limit, window_limit};

#[count_limit(limit = name, period = 'x')]
async fn counted(name: &str) -> Result<(), Error> {
    drop(name.to_owned());
    Ok(())
}

#[rate_limit(rate = (), burst = true)]
async fn rated() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1m", precision = precision)]
async fn no_unit(precision: u64) -> Result<(), Error> {
    let _ = precision;
    Ok(())
}

fn main() {}
