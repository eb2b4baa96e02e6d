use ratelimits::count_limit;

fn one(_: u8) -> u32 {
    0
}

#[count_limit(5, "1m", fallback = one)]
async fn send() -> u32 {
    1
}

fn main() {}
