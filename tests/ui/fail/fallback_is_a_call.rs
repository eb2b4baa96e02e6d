use ratelimits::count_limit;

fn f() -> u32 {
    0
}

#[count_limit(5, "1m", fallback = f())]
async fn send() -> u32 {
    f()
}

fn with(_: u32) -> u32 {
    0
}

#[count_limit(5, "1m", fallback = with(id))]
async fn send_to(id: u32) -> u32 {
    id
}

fn main() {}
