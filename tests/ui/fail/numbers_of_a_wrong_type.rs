use ratelimits::{Error, count_limit, rate_limit};

#[count_limit(limit = name, period = 'x')]
async fn counted(name: &str) -> Result<(), Error> {
    drop(name.to_owned());
    Ok(())
}

#[rate_limit(rate = (), burst = true)]
async fn rated() -> Result<(), Error> {
    Ok(())
}

fn main() {}
