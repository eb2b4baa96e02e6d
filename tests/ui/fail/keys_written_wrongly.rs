#![allow(unused_variables)]

use ratelimits::{Error, count_limit};

#[count_limit(5, "1m", key_type = CUSTOM)]
async fn missing(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key_type = IP, key = user)]
async fn contradicts(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key_type = usr)]
async fn unknown(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = ())]
async fn unit(user: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
