use ratelimits::count_limit;

#[count_limit(5, "1m", fallback = |error| error.retry_in())]
async fn send() -> Option<u32> {
    Some(1)
}

fn main() {}
