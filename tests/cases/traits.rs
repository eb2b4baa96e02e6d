//! Async functions in traits.

use std::future::Future;

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, assert_admits_one, assert_outputs, isolated, text};

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
