use ratelimits::count_limit;

struct Service;

#[count_limit(5, "1m")]
impl Service {}

fn main() {}
