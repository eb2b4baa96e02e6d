use ratelimits::count_limit;

fn one(_: u8) -> u32 {
    0
}

async fn text(_: u8) -> String {
    String::new()
}

#[count_limit(5, "1m", fallback = one)]
async fn too_few() -> u32 {
    1
}

#[count_limit(5, "1m", fallback = text, pass_args)]
async fn wrong_output(number: u8) -> u32 {
    number.into()
}

#[count_limit(5, "1m", fallback = "one", pass_args)]
async fn wrong_argument(number: u16) -> u32 {
    number.into()
}

#[count_limit(5, "1m", fallback = absent)]
async fn missing() -> u32 {
    1
}

fn main() {}
