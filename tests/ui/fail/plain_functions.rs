use std::future::Ready;

use ratelimits::{count_limit, rate_limit};

struct Reply;

#[rate_limit(5)]
fn not_a_result(_text: &str) -> Reply {
    Reply
}

#[count_limit(5, "1m")]
fn nothing() {}

#[rate_limit(5)]
fn opaque() -> impl Iterator<Item = u8> {
    [1].into_iter()
}

#[rate_limit(5, fallback = || Reply)]
fn closure_without_an_argument() -> Reply {
    Reply
}

#[rate_limit(5, charge_when = |out| out.is_some())]
fn seen() -> Result<u8, ratelimits::Error> {
    Ok(1)
}

#[rate_limit(5, shadow, settle = |out| out.len() as f64)]
fn settled() -> String {
    String::new()
}

#[rate_limit(5, shadow, charge_when = |_| true)]
fn wrong_body() -> u8 {
    "text"
}

/// The type is a future, which the attribute cannot see.
#[count_limit(5, "1m")]
fn future() -> Ready<u8> {
    std::future::ready(1)
}

fn main() {}
