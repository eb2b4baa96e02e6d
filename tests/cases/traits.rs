//! Async functions in traits, and functions that return a future.

use std::future::Future;
use std::pin::Pin;

use futures_core::future::{BoxFuture, LocalBoxFuture};

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

struct User {
    id: u64,
}

trait Service {
    fn call(&self, id: u8) -> impl Future<Output = AppResult<u8>>;

    async fn pass(&self, text: Text) -> Text;

    #[count_limit(1, "1d")]
    async fn provided(&self) -> AppResult<u8> {
        Ok(1)
    }

    #[count_limit(1, "1d", fallback = Self::refused, pass_args)]
    async fn provided_with_fallback(&self, text: Text) -> Text {
        drop(text);
        Text(String::new())
    }

    async fn refused(&self, text: Text) -> Text {
        tokio::task::yield_now().await;
        text
    }
}

impl Service for User {
    #[count_limit(1, "1d", key = "<self.id>:<id>")]
    async fn call(&self, id: u8) -> AppResult<u8> {
        Ok(id)
    }

    #[count_limit(1, "1d", fallback = self.refused, pass_args)]
    async fn pass(&self, Text(text): Text) -> Text {
        Text(text.repeat(2))
    }
}

impl Service for u8 {
    #[rate_limit("1/day", key = "<self>:<id>")]
    async fn call(&self, id: u8) -> AppResult<u8> {
        Ok(self + id)
    }

    #[rate_limit("1/day", fallback = <Self as Service>::refused, pass_args)]
    async fn pass(&self, text: Text) -> Text {
        self.refused(text).await
    }
}

#[test]
fn async_fn_in_traits() {
    isolated(async {
        let user = User { id: 1 };
        assert_eq!(user.call(1).await.unwrap(), 1);
        assert_admits_one!(user.call(2) => 2);
        assert_outputs!(user.pass(text("a")) => text("aa"), text("a"));
        assert_admits_one!(5.call(1) => 6);
        assert_eq!(5.pass(text("a")).await, text("a"));
        assert_eq!(5.pass(text("b")).await, text("b"));
    });
}

#[test]
fn default_bodies() {
    isolated(async {
        let user = User { id: 1 };
        assert_admits_one!(user.provided() => 1);
        assert_eq!(5.provided().await.unwrap(), 1);
        assert_outputs!(user.provided_with_fallback(text("a")) => text(""), text("a"));
    });
}

#[expect(clippy::manual_async_fn, reason = "the case")]
#[count_limit(1, "1d", key = id)]
fn future(id: u8) -> impl Future<Output = AppResult<u8>> + Send {
    async move { Ok(id) }
}

#[count_limit(1, "1d", key = id, fallback = later, pass_args)]
fn future_after_statements(id: u8, text: Text) -> impl Future<Output = (u8, Text)> {
    let next = id + 1;
    async move {
        let text = text;
        (next, text)
    }
}

async fn later(id: u8, text: Text) -> (u8, Text) {
    tokio::task::yield_now().await;
    (id, text)
}

#[test]
fn functions_returning_async_blocks() {
    isolated(async {
        assert_eq!(future(1).await.unwrap(), 1);
        assert_admits_one!(future(2) => 2);
        assert_outputs!(future_after_statements(1, text("a")) => (2, text("a")), (1, text("a")));
    });
}

impl User {
    #[count_limit(1, "1d", key = self.id)]
    fn boxed(&self, step: u64) -> Pin<Box<dyn Future<Output = AppResult<u64>> + Send + '_>> {
        Box::pin(async move { Ok(self.id + step) })
    }

    #[count_limit(1, "1d", key = "<self.id>:<step>")]
    pub(super) fn boxed_after_statements(&self, step: u64) -> BoxFuture<'_, AppResult<u64>> {
        let sum = self.id + step;
        Box::pin(async move {
            tokio::task::yield_now().await;
            if step == 0 {
                return Ok(0);
            }
            Ok("1".parse::<u64>()? + sum)
        })
    }

    #[count_limit(1, "1d", fallback = Self::local_fallback, pass_args)]
    fn local<'a>(&'a mut self, text: &'a mut Text) -> LocalBoxFuture<'a, &'a mut String> {
        Box::pin(async {
            self.id += 1;
            text.0.push('!');
            &mut text.0
        })
    }

    async fn local_fallback<'a>(&mut self, text: &'a mut Text) -> &'a mut String {
        tokio::task::yield_now().await;
        text.0.push('?');
        &mut text.0
    }
}

/// As in the futures crate.
trait FutureExt: Future + Sized {
    fn boxed<'a>(self) -> BoxFuture<'a, Self::Output>
    where
        Self: Send + 'a,
    {
        Box::pin(self)
    }
}

impl<F: Future> FutureExt for F {}

#[count_limit(1, "1d", key = (id, list.len()), fallback = |_| Ok(0))]
fn boxed_by_method(id: u64, list: &[u64]) -> BoxFuture<'_, AppResult<u64>> {
    async move {
        tokio::task::yield_now().await;
        Ok(list.first().map_or_else(|| "5".parse(), |first| Ok(first + id))?)
    }
    .boxed()
}

#[test]
fn functions_returning_boxed_futures() {
    isolated(async {
        let mut user = User { id: 1 };
        assert_eq!(user.boxed(1).await.unwrap(), 2);
        assert_limited(user.boxed(2).await);
        assert_eq!(boxed_by_method(1, &[2]).await.unwrap(), 3);
        assert_eq!(boxed_by_method(1, &[2]).await.unwrap(), 0);
        assert_eq!(boxed_by_method(1, &[]).await.unwrap(), 5);
        assert_eq!(user.boxed_after_statements(1).await.unwrap(), 3);
        assert_eq!(user.boxed_after_statements(0).await.unwrap(), 0);
        assert_limited(user.boxed_after_statements(1).await);
        let mut text = text("a");
        assert_outputs!(user.local(&mut text) => "a!", "a!?");
        assert_eq!(user.id, 2);
    });
}

#[test]
fn unpolled_futures_are_not_charged() {
    isolated(async {
        let user = User { id: 7 };
        drop((future(7), user.boxed(1), user.boxed_after_statements(1), user.call(7)));
        assert_eq!(future(7).await.unwrap(), 7);
        assert_eq!(user.boxed(1).await.unwrap(), 8);
        assert_eq!(user.boxed_after_statements(1).await.unwrap(), 9);
        assert_eq!(user.call(7).await.unwrap(), 7);
    });
}

/// Unlike the block that `#[async_trait]` generates, this one has items after its first statement.
#[count_limit(1, "1d", key = id, fallback = |_| 9)]
fn items_in_the_block(id: u8) -> BoxFuture<'static, u8> {
    Box::pin(async move {
        let more = helper();
        let id = id;
        fn helper() -> u8 {
            1
        }
        id + more
    })
}

#[test]
fn async_blocks_with_items() {
    isolated(async { assert_eq!((items_in_the_block(1).await, items_in_the_block(1).await), (2, 9)) });
}
