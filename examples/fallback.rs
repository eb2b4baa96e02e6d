//! Run with `cargo run -p examples --example fallback`: what a refused call returns.

use ratelimits::{Error, rate_limit};

/// With a fallback, any return type works.
#[rate_limit(rate = "1/min", burst = 1, fallback = cached_price, pass_args)]
async fn price(article: String) -> u32 {
    println!("  asking the supplier for {article}");
    1299
}

/// The arguments are moved here, not cloned.
async fn cached_price(article: String) -> u32 {
    println!("  price of {article} from the cache");
    1250
}

struct Mailer {
    queue: std::sync::Mutex<Vec<String>>,
}

impl Mailer {
    /// The fallback of a method can be a method.
    #[rate_limit(rate = "1/min", burst = 1, fallback = self.later, pass_args)]
    async fn send(&self, to: &str) -> &'static str {
        println!("  mail to {to}");
        "sent"
    }

    fn later(&self, to: &str) -> &'static str {
        self.queue.lock().unwrap().push(to.to_owned());
        "queued"
    }
}

/// Without a fallback, the error is converted into the function's own error type.
#[rate_limit(rate = "1/min", burst = 1)]
async fn rebuild_index() -> Result<(), AppError> {
    Ok(())
}

struct AppError(String);

impl From<Error> for AppError {
    fn from(error: Error) -> Self {
        AppError(match error.retry_after() {
            Some(wait) => format!("too often; retry in {} s", wait.as_secs() + 1),
            None => error.to_string(),
        })
    }
}

#[tokio::main]
async fn main() {
    for _ in 0..2 {
        println!("price: {}", price("chair".to_owned()).await);
    }
    let mailer = Mailer { queue: std::sync::Mutex::default() };
    for to in ["ann@example.org", "bob@example.org"] {
        println!("mail: {}", mailer.send(to).await);
    }
    println!("in the queue: {:?}", mailer.queue.lock().unwrap());
    for _ in 0..2 {
        match rebuild_index().await {
            Ok(()) => println!("index: rebuilt"),
            Err(AppError(problem)) => println!("index: {problem}"),
        }
    }
}
