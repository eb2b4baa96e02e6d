use ratelimits::count_limit;

fn f(user: u32) -> u32 {
    user
}

#[count_limit(5, "1m", fallback = f, pass_args)]
async fn send(#[cfg(all())] user: u32) -> u32 {
    f(user)
}

fn main() {}
