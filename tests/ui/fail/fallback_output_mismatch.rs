use ratelimits::count_limit;

async fn text() -> String {
    String::new()
}

#[count_limit(5, "1m", fallback = text)]
async fn function() -> u32 {
    1
}

#[count_limit(5, "1m", fallback = |error| error.retry_after())]
async fn closure() -> u32 {
    1
}

#[count_limit(5, "1m", fallback = async |error| error.is_limited())]
async fn async_closure() -> u32 {
    1
}

fn main() {}
