use ratelimits::{Error, count_limit, rate_limit};

async fn later(text: String) -> Result<String, Error> {
    Ok(text)
}

#[rate_limit(5, fallback = later, pass_args)]
fn function(text: String) -> Result<String, Error> {
    Ok(text)
}

#[count_limit(5, "1m", fallback = |_| async move { text.len() })]
fn closure(text: String) -> usize {
    text.len()
}

struct Service;

impl Service {
    #[count_limit(5, "1m", fallback = self.busy)]
    fn method(&self) -> u8 {
        1
    }

    async fn busy(&self) -> u8 {
        0
    }
}

fn main() {}
