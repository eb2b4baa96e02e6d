use ratelimits::count_limit;

#[count_limit(5, "1m", fallback = absent)]
async fn send() -> u32 {
    1
}

fn main() {}
