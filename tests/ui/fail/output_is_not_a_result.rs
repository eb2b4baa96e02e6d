use ratelimits::count_limit;

struct NoFrom;

#[count_limit(5, "1m")]
async fn number() -> u32 {
    1
}

#[count_limit(5, "1m")]
async fn unit() {}

#[count_limit(5, "1m")]
async fn no_from() -> Result<u32, NoFrom> {
    Ok(1)
}

fn main() {}
