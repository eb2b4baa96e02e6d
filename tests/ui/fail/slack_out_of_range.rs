use ratelimits::{Error, rate_limit};

#[rate_limit(rate = 5, slack = "0%")]
async fn nothing() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "25%")]
async fn too_much() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "0.01")]
async fn no_percentage() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, slack = "0.00001%")]
async fn too_fine() -> Result<(), Error> {
    Ok(())
}

fn main() {}
