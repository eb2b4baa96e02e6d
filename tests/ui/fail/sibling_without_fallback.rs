use ratelimits::{count_limit, rate_limit};

fn zero() -> u32 {
    0
}

#[rate_limit(5, fallback = zero)]
#[count_limit(5, "1m")]
async fn send() -> u32 {
    1
}

fn main() {}
