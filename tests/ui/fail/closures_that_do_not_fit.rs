use ratelimits::{Error, Registry, count_limit};

struct User {
    id: u64,
    registry: Registry,
}

#[count_limit(5, "1m", fallback = |error| error.retry_after())]
async fn of_another_type(id: u64) -> u64 {
    id
}

#[count_limit(5, "1m", fallback = async |error| error.is_limited())]
async fn of_another_future(id: u64) -> u64 {
    id
}

#[count_limit(5, "1m", fallback = |error| error.retry_in())]
async fn that_asks_too_much(id: u64) -> Option<u64> {
    Some(id)
}

#[count_limit(5, "1m", charge_when = |out| out.is_some())]
async fn of_an_output_it_is_not(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[count_limit(5, "1m", charge_when = |out| out.unwrap_or(0))]
async fn that_says_neither_yes_nor_no(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[count_limit(5, "1m", skip_when = user.id)]
async fn of_no_condition(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

#[count_limit(5, "1m", registry = user.registry)]
async fn of_a_registry_that_moves(user: &User) -> Result<u64, Error> {
    Ok(user.id)
}

fn main() {}
