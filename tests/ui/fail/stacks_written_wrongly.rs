use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};

#[rate_limit(rat = 5)]
#[count_limit(limit = 5)]
#[allow(dead_code)]
#[window_limit(5, "1m", kye = id)]
async fn each_with_a_mistake(id: u64) -> Result<u64, Error> {
    Ok(id)
}

#[rate_limit(5, registry = here)]
#[count_limit(5, "1m", registry = there)]
#[window_limit(5, "1m")]
async fn on_several_registries(here: &Registry, there: &Registry) -> Result<(), Error> {
    let _ = (here, there);
    Ok(())
}

#[rate_limit(5, name = "same")]
#[count_limit(5, "1m", name = "same")]
async fn of_one_name() -> Result<(), Error> {
    Ok(())
}

#[rate_limit(5, fallback = zero)]
#[count_limit(5, "1m")]
async fn without_one_of_its_fallbacks() -> u64 {
    1
}

fn zero() -> u64 {
    0
}

#[rate_limit(5)]
#[count_limit(5, "1m")]
async fn without_a_named_type() -> impl Sized {
    1
}

fn main() {}
