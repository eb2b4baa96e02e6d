//! Only the compiler reports a syntax error.

use std::future::Future;

use ratelimits::{Error, count_limit, rate_limit};

#[rate_limit(5)]
#[count_limit(5, "1m")]
fn length(text: String) -> impl Future<Output = Result<usize, Error>> {
    let length = text.len()
    async move { Ok(length) }
}

fn main() {}
