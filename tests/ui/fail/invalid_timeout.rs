use ratelimits::{Error, rate_limit};

#[rate_limit(rate = 5, timeout = "0.5s")]
async fn fraction() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "1m30")]
async fn no_unit() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "for ever")]
async fn unknown_word() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, timeout = "99999999999999d")]
async fn too_long() -> Result<(), Error> {
    Ok(())
}

fn main() {}
