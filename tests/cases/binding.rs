//! `bind`, on functions of every kind.

use std::fmt::Display;

use async_trait::async_trait;
use ratelimits::{Decision, count_limit, rate_limit};

use super::app::{AppError, AppResult, assert_admits_one, assert_outputs, isolated};

#[count_limit(1, "1d", key = key, bind = decision)]
async fn generic<K: Display, const N: usize>(key: K, numbers: [u8; N]) -> AppResult<(usize, u64)> {
    let parsed: u64 = key.to_string().parse()?;
    let decision: Decision = decision;
    if parsed == 9 {
        return Ok((0, decision.limit));
    }
    tokio::task::yield_now().await;
    Ok((numbers.len(), decision.limit))
}

#[count_limit(1, "1d", fallback = |_| format!("{first}{second}"), bind = seen)]
async fn destructured((first, second): (String, String), mut times: usize) -> String {
    times += usize::try_from(seen.remaining).unwrap_or(0);
    format!("{first}{second}").repeat(times)
}

fn on_trait() -> &'static str {
    "refused"
}

#[async_trait]
trait Service {
    async fn call(&self, text: String) -> AppResult<String>;
}

struct Api;

#[async_trait]
impl Service for Api {
    #[count_limit(1, "1d", key = text, bind = decision)]
    async fn call(&self, text: String) -> AppResult<String> {
        tokio::task::yield_now().await;
        Ok(text + &decision.remaining.to_string())
    }
}

impl Api {
    #[rate_limit("1/day", fallback = Self::none, bind = decision)]
    #[count_limit(5, "1d", shadow)]
    async fn method(&mut self, number: u8) -> impl Display + use<> {
        format!("{number}{}", decision.policies().len())
    }

    fn none() -> String {
        on_trait().into()
    }
}

#[count_limit(1, "1d", bind = r#type)]
async fn raw() -> AppResult<u64> {
    Ok(r#type.remaining)
}

/// The name of a local variable of the body, and of an item.
#[count_limit(1, "1d", bind = on_trait)]
async fn shadowed() -> AppResult<u64> {
    let remaining = on_trait.remaining;
    let on_trait = 7;
    Ok(remaining + on_trait)
}

#[test]
fn bodies_see_their_decision() {
    isolated(async {
        assert_admits_one!(
            generic(5u8, [1, 2]) => (2, 1),
            generic("9", [1]) => (0, 1),
            Api.call("text".into()) => "text0",
            raw() => 0,
            shadowed() => 7,
        );
        assert!(matches!(generic("x", []).await, Err(AppError::Parse)));
        let pair = || ("a".to_owned(), "b".to_owned());
        assert_outputs!(destructured(pair(), 2) => "abab", "ab");
        let mut api = Api;
        assert_eq!(api.method(3).await.to_string(), "32");
        assert_eq!(api.method(3).await.to_string(), "refused");
    });
}
