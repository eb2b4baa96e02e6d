use ratelimits::{Error, count_limit};

struct User {
    id: u64,
}

#[count_limit(5, "1m", skip_when = user.id)]
async fn send(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", skip_when = "user.is_admin")]
async fn text() -> Result<(), Error> {
    Ok(())
}

fn main() {}
