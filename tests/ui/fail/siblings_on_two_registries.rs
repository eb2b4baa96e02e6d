#![allow(unused_variables)]

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};

#[rate_limit(5, registry = here)]
#[count_limit(5, "1m", registry = there)]
#[window_limit(5, "1m")]
async fn send(here: &Registry, there: &Registry) -> Result<(), Error> {
    Ok(())
}

fn main() {}
