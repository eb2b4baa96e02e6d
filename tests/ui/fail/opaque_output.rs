use ratelimits::count_limit;

#[count_limit(5, "1m")]
async fn send() -> impl std::fmt::Display {
    1
}

fn main() {}
