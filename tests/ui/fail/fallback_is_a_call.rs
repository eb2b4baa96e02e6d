use ratelimits::count_limit;

fn f() -> u32 {
    0
}

#[count_limit(5, "1m", fallback = f())]
async fn send() -> u32 {
    f()
}

fn main() {}
