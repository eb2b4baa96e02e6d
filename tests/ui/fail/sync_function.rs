use ratelimits::{Error, count_limit};

#[count_limit(5, "1m")]
fn send() -> Result<(), Error> {
    Ok(())
}

fn main() {}
