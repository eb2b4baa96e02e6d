//! Functions of every kind.

use std::fmt::Display;
use std::rc::Rc;

use async_trait::async_trait;
use ratelimits::Decision;
use tokio::task::yield_now;

use super::*;

struct Api {
    key: String,
    calls: u8,
}

trait Service {
    async fn serve(&self) -> AppResult<bool>;

    #[concurrency_limit(1, key = key, name = "held")]
    async fn provided(key: &str) -> AppResult<bool> {
        Ok(is_held(key))
    }
}

#[async_trait]
trait Boxed {
    async fn boxed(&mut self, key: String) -> AppResult<bool>;
}

impl Api {
    #[concurrency_limit(1, key = self.key, name = "held")]
    async fn by_value(self) -> AppResult<(bool, String)> {
        Ok((is_held(&self.key), self.key))
    }

    #[concurrency_limit(1, key = self.key, name = "held")]
    async fn by_mutable_reference(&mut self) -> AppResult<&mut u8> {
        yield_now().await;
        self.calls += u8::from(is_held(&self.key));
        Ok(&mut self.calls)
    }

    #[concurrency_limit(1, key = key, name = "held", fallback = Self::refused, pass_args)]
    async fn opaque<'a>(&'a self, key: &'a str) -> impl Display + use<'a> {
        let held = is_held(key);
        format!("{held}")
    }

    async fn refused(&self, key: &str) -> String {
        let calls = self.calls;
        format!("{key}{calls}")
    }
}

impl Service for Api {
    #[concurrency_limit(1, key = self.key, name = "held")]
    async fn serve(&self) -> AppResult<bool> {
        yield_now().await;
        Ok(is_held(&self.key))
    }
}

#[async_trait]
impl Boxed for Api {
    #[concurrency_limit(1, key = key, name = "held")]
    async fn boxed(&mut self, key: String) -> AppResult<bool> {
        yield_now().await;
        let held = is_held(&key);
        self.key = key;
        Ok(held)
    }
}

#[test]
fn methods() {
    isolated(async {
        let mut api = Api { key: "a".into(), calls: 0 };
        assert_eq!(*api.by_mutable_reference().await.unwrap(), 1);
        assert!(!is_held("a"));
        assert!(api.serve().await.unwrap() && !is_held("a"));
        assert!(Api::provided("a").await.unwrap() && !is_held("a"));
        assert!(api.boxed("b".into()).await.unwrap() && !is_held("b"));
        assert_eq!(api.opaque("b").await.to_string(), "true");
        let mut holding = Box::pin(written("b"));
        assert!(poll(holding.as_mut()).is_pending());
        assert_eq!(api.opaque("b").await.to_string(), "b1");
        drop(holding);
        assert_eq!(api.by_value().await.unwrap(), (true, "b".to_owned()));
        assert!(!is_held("b"));
    });
}

#[concurrency_limit(1, key = key, name = "held")]
fn written(key: &str) -> Pin<Box<dyn Future<Output = AppResult<bool>> + Send + '_>> {
    let key = key.trim();
    Box::pin(async move {
        yield_now().await;
        Ok(is_held(key))
    })
}

#[concurrency_limit(1, key = key, name = "held")]
async fn generic<K, const N: usize>(key: K, numbers: [u8; N]) -> AppResult<(bool, Option<u8>)>
where
    K: Display + AsRef<str>,
{
    let inner = async |number: u8| {
        yield_now().await;
        (is_held(key.as_ref()), number)
    };
    let mut last = None;
    for number in numbers {
        let (held, number) = inner(number).await;
        if !held {
            return Ok((false, None));
        }
        last = Some(number);
    }
    Ok((true, last))
}

/// The last expression is coerced to the return type, and its type inferred from it.
#[concurrency_limit(1, key = key, name = "held")]
async fn coerced(key: &str) -> Result<Box<dyn Display>, Box<dyn std::error::Error>> {
    if key.is_empty() {
        return Ok(Box::new(key.len()));
    }
    Ok(Box::new(key.parse::<f32>()?))
}

#[concurrency_limit(1, key = key, name = "held")]
async fn borrowed<'a>(key: &'a str, texts: &'a [String]) -> AppResult<&'a str> {
    let found = texts.iter().find(|text| **text == key);
    found.map(String::as_str).ok_or(AppError::Parse)
}

#[concurrency_limit(1, key = key, name = "held", fallback = none)]
async fn not_send(key: &str) -> Option<Rc<u8>> {
    yield_now().await;
    is_held(key).then(|| Rc::new(1))
}

fn none() -> Option<Rc<u8>> {
    None
}

#[test]
fn functions() {
    isolated(async {
        assert!(written(" a ").await.unwrap() && !is_held("a"));
        assert_eq!(generic("a", [1, 2]).await.unwrap(), (true, Some(2)));
        assert_eq!(generic(String::from("a"), []).await.unwrap(), (true, None));
        assert_eq!(released("5", coerced("5")).unwrap().to_string(), "5");
        assert!(released("x", coerced("x")).is_err());
        let texts = ["b".to_owned()];
        assert_eq!(released("b", borrowed("b", &texts)).unwrap(), "b");
        assert_eq!(not_send("a").await, Some(Rc::new(1)));
        assert!(!is_held("a"));
    });
}

#[test]
fn futures_are_send() {
    fn is_send<T: Send>(future: T) {
        drop(future);
    }
    is_send(written("a"));
    is_send(generic("a", [1]));
    is_send(not_send("a"));
    is_send(bound("a"));
}

/// What runs on after the body takes the decision along.
struct Stream {
    decision: Decision,
    left: u8,
}

#[concurrency_limit(1, key = key, name = "held", bind = decision)]
async fn bound(key: &str) -> AppResult<Stream> {
    yield_now().await;
    assert!(is_held(key));
    Ok(Stream { decision, left: 3 })
}

#[concurrency_limit(1, key = key, name = "held", bind = decision)]
async fn bound_and_kept(key: &str) -> AppResult<u64> {
    let limit = decision.limit;
    yield_now().await;
    assert!(is_held(key));
    Ok(limit)
}

#[test]
fn a_decision_is_the_hold() {
    isolated(async {
        let mut stream = bound("a").await.unwrap();
        while stream.left > 0 {
            assert!(is_held("a"));
            assert!(bound("a").await.is_err_and(|error| error.is_limited()));
            stream.left -= 1;
        }
        drop(stream.decision);
        assert_eq!(bound_and_kept("a").await.unwrap(), 1);
        assert!(!is_held("a"));
    });
}
