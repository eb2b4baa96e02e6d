//! `pause_when`, on functions of every kind.

use std::fmt::Display;
use std::time::Duration;

use async_trait::async_trait;
use ratelimits::{count_limit, rate_limit};

use super::app::{AppError, AppResult, assert_admits_one, assert_outputs, isolated};

#[count_limit(1, "1d", key = key, penalty = ["1s", "1d"], pause_when = |out| out.is_err().then_some(Duration::ZERO))]
async fn generic<K: Display, const N: usize>(key: K, numbers: [u8; N]) -> AppResult<usize> {
    let parsed: u64 = key.to_string().parse()?;
    if parsed == 9 {
        return Ok(0);
    }
    tokio::task::yield_now().await;
    Ok(numbers.len())
}

#[count_limit(1, "1d", fallback = |_| first.len(), pause_when = never)]
async fn destructured((first, second): (String, String), mut times: usize) -> usize {
    times += first.len();
    times + second.len()
}

fn never<T>(_: &T) -> Option<Duration> {
    None
}

#[async_trait]
trait Service {
    async fn call(&self, text: String) -> AppResult<String>;
}

struct Api;

#[async_trait]
impl Service for Api {
    #[count_limit(1, "1d", key = text, penalty = ["1h"], pause_when = |_| None)]
    async fn call(&self, text: String) -> AppResult<String> {
        tokio::task::yield_now().await;
        Ok(text)
    }
}

impl Api {
    #[rate_limit("1/day", fallback = Self::none, bind = decision, pause_when = |out| Duration::from_secs(out.len() as u64))]
    #[count_limit(5, "1d", shadow, pause_when = never)]
    async fn method(&mut self, number: u8) -> String {
        format!("{number}{}", decision.policies().len())
    }

    fn none() -> String {
        "refused".into()
    }
}

#[rate_limit("1/day", shadow, pause_when = never, charge_when = |()| true)]
async fn nothing() {}

#[test]
fn functions_that_pause_return_what_their_bodies_do() {
    isolated(async {
        assert_admits_one!(generic(5_u8, [1, 2, 3]) => 3, generic("9", [1]) => 0, Api.call("text".into()) => "text");
        assert!(matches!(generic("x", []).await, Err(AppError::Parse)));
        let pair = || ("a".to_owned(), "bc".to_owned());
        assert_outputs!(destructured(pair(), 1) => 4, 1);
        let mut api = Api;
        assert_eq!(api.method(7).await, "72");
        assert_eq!(api.method(7).await, "refused");
        nothing().await;
    });
}
