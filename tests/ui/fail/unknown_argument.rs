use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(limt = 5, period = 60)]
async fn misspelled() -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = 60, zzz = 1)]
async fn unknown() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, aligned)]
async fn of_another_attribute() -> Result<(), Error> {
    Ok(())
}

fn main() {}
