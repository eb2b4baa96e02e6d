use ratelimits::{Error, count_limit};

struct User {
    id: u64,
}

#[count_limit(5, "1m", key = "<user.idd>")]
async fn template(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = user.idd)]
async fn expression(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

fn main() {}
