//! Only the compiler reports a syntax error.

use ratelimits::{Error, count_limit, rate_limit};

#[rate_limit(5)]
#[count_limit(5, "1m")]
async fn untyped(user) -> Result<(), Error> {
    Ok(())
}

fn main() {}
