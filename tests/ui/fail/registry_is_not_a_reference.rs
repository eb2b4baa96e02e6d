#![allow(unused_variables)]

use ratelimits::{Error, Registry, count_limit};

#[count_limit(5, "1m", registry = registry)]
async fn moved(registry: Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m", registry = "redis://localhost")]
async fn text() -> Result<(), Error> {
    Ok(())
}

fn main() {}
