use ratelimits::{Error, count_limit};

#[count_limit(5, "1m")]
async fn wrong_type() -> Result<u8, Error> {
    let number: u8 = "text";
    Ok(number)
}

#[count_limit(5, "1m")]
async fn no_value() -> Result<u8, Error> {
    let _ = 5;
}

fn main() {}
