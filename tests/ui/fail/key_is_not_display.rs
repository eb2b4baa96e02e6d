use ratelimits::{Error, count_limit};

struct User {
    id: u64,
}

#[count_limit(5, "1m", key = user)]
async fn send(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

fn main() {}
