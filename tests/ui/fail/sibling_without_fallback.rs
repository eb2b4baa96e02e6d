use ratelimits::{count_limit, rate_limit};

fn zero() -> u32 {
    0
}

#[rate_limit(5, fallback = zero)]
#[count_limit(5, "1m")]
async fn send() -> u32 {
    1
}

#[count_limit(5, "1m", fallback = zero)]
#[rate_limit(5)]
#[count_limit(1000, "1d", shadow)]
#[rate_limit("100/h")]
async fn several() -> u32 {
    1
}

#[rate_limit(5)]
#[count_limit(5, "1m", fallback = zero)]
async fn opaque() -> impl std::fmt::Display {
    1
}

fn main() {}
