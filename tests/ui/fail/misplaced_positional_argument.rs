#![allow(unused_variables)]

use ratelimits::{Error, count_limit};

#[count_limit(limit = 5, "1m")]
async fn after_named() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", user)]
async fn third(user: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
