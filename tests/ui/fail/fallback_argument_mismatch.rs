use ratelimits::count_limit;

fn one(_: u8) -> u32 {
    0
}

#[count_limit(5, "1m", fallback = one, pass_args)]
async fn send(number: u16) -> u32 {
    number.into()
}

fn main() {}
