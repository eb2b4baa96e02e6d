use ratelimits::count_limit;

#[count_limit(5, "1m", fallback = || 0)]
async fn none() -> u32 {
    1
}

#[count_limit(5, "1m", fallback = |user, error| 0)]
async fn two(user: u32) -> u32 {
    user
}

fn main() {}
