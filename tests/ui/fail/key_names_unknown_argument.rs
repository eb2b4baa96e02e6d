use ratelimits::{Error, count_limit, rate_limit};

struct User {
    id: u64,
}

#[count_limit(5, "1m", key = "<usr.id>")]
async fn template(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = user.id)]
#[rate_limit(5, key = usr.id)]
async fn expression(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

fn main() {}
