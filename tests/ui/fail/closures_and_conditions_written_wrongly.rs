use ratelimits::{Error, count_limit};

#[count_limit(5, 60, fallback = || 0)]
async fn no_argument() -> u32 {
    5
}

#[count_limit(5, 60, fallback = |user, error| 0)]
async fn two_arguments(user: u32) -> u32 {
    user
}

#[count_limit(5, 60, fallback = |error| user, pass_args)]
async fn with_arguments(user: u32) -> u32 {
    user
}

#[count_limit(5, 60, fallback = "|error| 0")]
async fn in_quotes() -> u32 {
    5
}

#[count_limit(5, 60, charge_when = out.is_err(), skip_when = "user.is_admin", registry = "redis://", crate = "renamed")]
async fn conditions() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, 60, key = user., shadow = false)]
async fn half_typed(_user: u32) -> Result<(), Error> {
    Ok(())
}

fn main() {}
