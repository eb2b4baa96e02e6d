//! Functions that return a future.

use std::future::Future;
use std::pin::Pin;

use futures_core::future::{BoxFuture, LocalBoxFuture};

use super::limits::{count_limit, rate_limit};
use super::{AppError, AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

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

struct User {
    id: u64,
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
        drop((future(7), user.boxed(1), user.boxed_after_statements(1)));
        assert_eq!(future(7).await.unwrap(), 7);
        assert_eq!(user.boxed(1).await.unwrap(), 8);
        assert_eq!(user.boxed_after_statements(1).await.unwrap(), 9);
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

fn mutual(depth: u8) -> Pin<Box<dyn Future<Output = AppResult<u8>> + Send>> {
    #[rate_limit("1/day", burst = 5)]
    async fn inner(depth: u8) -> AppResult<u8> {
        if depth == 0 { Ok(0) } else { Ok(mutual(depth - 1).await? + 1) }
    }
    Box::pin(inner(depth))
}

#[test]
fn recursive_futures() {
    isolated(async {
        assert_eq!(mutual(4).await.unwrap(), 4);
        assert_limited(mutual(0).await);
    });
}

type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

#[count_limit(1, "1d")]
async fn boxed_future(number: &u8) -> Result<Later<'_, u8>, AppError> {
    Ok(Box::pin(async move { *number }))
}

#[test]
fn outputs_that_are_futures() {
    isolated(async {
        assert_eq!(boxed_future(&5).await.unwrap().await, 5);
        assert!(boxed_future(&5).await.is_err());
    });
}
