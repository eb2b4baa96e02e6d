use ratelimits::{Error, count_limit};

#[count_limit(5, "1m", charge_when = out.is_err())]
async fn send() -> Result<(), Error> {
    Ok(())
}

fn main() {}
