#![allow(unused_variables)]

use ratelimits::{Error, count_limit};

#[count_limit(5, "1m", key = "a:<user")]
async fn unclosed(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "a>b")]
async fn unmatched(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "")]
async fn empty(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "<>")]
async fn empty_placeholder(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "<@usr>")]
async fn unknown_placeholder(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "<(user>")]
async fn not_an_expression(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = "{user}")]
async fn no_placeholder(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", key = <user>)]
async fn no_quotes(user: u64) -> Result<(), Error> {
    Ok(())
}

fn main() {}
