use ratelimits::{Error, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(rate = 5, on_store_error = "deny")]
async fn in_quotes() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = 60, on_store_error = alow)]
async fn misspelled() -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = 5, drain = "1m", on_store_error = panic)]
async fn unknown() -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = 60, on_store_error)]
async fn no_value() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, fail_open = true)]
async fn of_others() -> Result<(), Error> {
    Ok(())
}

fn main() {}
