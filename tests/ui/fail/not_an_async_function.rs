use ratelimits::{Error, count_limit};

#[count_limit(5, "1m")]
fn sync() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m")]
const fn constant() -> Result<(), Error> {
    Ok(())
}

trait Api {
    #[count_limit(5, "1m")]
    async fn no_body(&self) -> Result<(), Error>;
}

struct Service;

#[count_limit(5, "1m")]
impl Service {}

fn main() {}
