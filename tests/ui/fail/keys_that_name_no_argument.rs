use ratelimits::{Error, count_limit, rate_limit};

struct User {
    id: u64,
}

#[count_limit(5, "1m", key = "<usr.id>")]
async fn no_argument(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = "<user.idd>")]
async fn no_field(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = user.idd)]
async fn no_field_bare(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = "<user>")]
async fn no_part(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", key = user.id)]
#[rate_limit(5, key = usr.id)]
async fn stacked(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

fn main() {}
