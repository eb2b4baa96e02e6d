use ratelimits::{Error, rate_limit};

#[rate_limit(rate = "30000/s")]
async fn too_fast() -> Result<(), Error> {
    Ok(())
}

fn main() {}
