//! The body stays what it was.

use std::fmt::{Debug, Display};
use std::future::Future;

use ratelimits::{count_limit, rate_limit};

use super::{AppError, AppResult, User, alone, assert_limited};

#[count_limit(100, "1d")]
async fn question_mark(text: &str) -> AppResult<u32> {
    #![allow(clippy::needless_return)]
    let number = text.parse()?;
    if number == 7 {
        return Ok(0);
    }
    let list: Vec<_> = (0..number).collect();
    return Ok(list.iter().sum());
}

#[count_limit(100, "1d")]
async fn coerced() -> AppResult<Box<dyn Display + Send>> {
    Ok(Box::new(5))
}

#[count_limit(100, "1d")]
async fn opaque(list: &[u8]) -> AppResult<impl Iterator<Item = u8> + '_> {
    Ok(list.iter().map(|number| number + 1))
}

#[count_limit(100, "1d", key = key)]
async fn generic<'a, T, const N: usize>(key: impl Display, values: [&'a T; N]) -> Result<&'a T, AppError>
where
    T: Debug + ?Sized,
{
    let _ = key;
    Ok(values[0])
}

#[count_limit(100, "1d", key = "<call>:<deciding>")]
async fn shadowing(call: u8, deciding: u8) -> AppResult<u8> {
    struct Result;
    let _ = Result;
    #[allow(non_snake_case)]
    let POLICY = call + deciding;
    Ok(POLICY)
}

/// Names of the prelude and of the standard library, taken by the user.
#[allow(dead_code, unused_macros)]
mod clash {
    use crate::macros::AppError;

    struct Box;
    struct Result;
    struct Option;
    struct Ok;
    struct Err;
    mod core {}
    mod std {}
    macro_rules! concat {
        () => {};
    }
    macro_rules! module_path {
        () => {};
    }

    #[ratelimits::rate_limit(rate = 100.0, burst = "5s", key = key)]
    pub(super) async fn f(key: u8) -> ::core::result::Result<u8, AppError> {
        ::core::result::Result::Ok(key)
    }

    #[ratelimits::count_limit(limit = limit, period = "1m", fallback = none)]
    pub(super) async fn g(limit: u8) -> u8 {
        limit
    }

    fn none() -> u8 {
        0
    }
}

/// A documented function.
#[count_limit(100, "1d", key = r#type)]
#[rate_limit(1000)]
#[inline]
#[allow(clippy::mixed_attributes_style)]
pub(super) async fn r#fn(r#type: &str) -> Result<&str, AppError> {
    #![allow(clippy::needless_return)]
    Ok(r#type)
}

impl User {
    #[cfg_attr(all(), count_limit(2, "1d", key = self.id))]
    async fn lend(&mut self, _other: &str) -> AppResult<&mut u32> {
        Ok(&mut self.daily)
    }
}

#[count_limit(1, "1d", key = "<@method>")]
#[rate_limit("1/day", burst = 2)]
async fn stacked(text: String) -> AppResult<String> {
    Ok(text)
}

#[test]
fn stand_under_several_attributes() {
    alone(async {
        assert_eq!(stacked("text".to_owned()).await.unwrap(), "text");
        assert_limited(stacked(String::new()).await);
        assert_eq!(r#fn("type").await.unwrap(), "type");
        assert_eq!(*User { id: 1, daily: 5 }.lend("").await.unwrap(), 5);
    });
}

#[test]
fn are_what_they_were() {
    alone(async {
        assert_eq!(question_mark("4").await.unwrap(), 6);
        assert_eq!(question_mark("7").await.unwrap(), 0);
        assert!(matches!(question_mark("x").await, Err(AppError::Parse)));
        assert_eq!(coerced().await.unwrap().to_string(), "5");
        assert_eq!(opaque(&[1, 2]).await.unwrap().collect::<Vec<_>>(), [2, 3]);
        assert_eq!(generic("key", ["a", "b"]).await.unwrap(), "a");
        assert_eq!(shadowing(1, 2).await.unwrap(), 3);
        assert_eq!(clash::f(5).await.unwrap(), 5);
        assert_eq!(clash::g(5).await, 5);
    });
}

trait Service {
    fn call(&self, id: u8) -> impl Future<Output = AppResult<u8>>;

    #[count_limit(1, "1d")]
    async fn provided(&self) -> AppResult<u8> {
        Ok(1)
    }
}

impl Service for User {
    #[count_limit(1, "1d", key = "<self.id>:<id>")]
    async fn call(&self, id: u8) -> AppResult<u8> {
        Ok(id)
    }
}

#[test]
fn stand_in_traits_too() {
    alone(async {
        let user = User { id: 1, daily: 1 };
        assert_eq!(user.call(1).await.unwrap(), 1);
        assert_eq!(user.call(2).await.unwrap(), 2);
        assert_limited(user.call(2).await);
        user.provided().await.unwrap();
        assert_limited(user.provided().await);
    });
}

macro_rules! limited {
    ($name:ident($argument:ident), $key:literal, $limit:expr, $fallback:path, $body:block) => {
        #[count_limit($limit, "1d", key = $key, fallback = $fallback, pass_args)]
        async fn $name($argument: u8) -> u8 $body
    };
    ($name:ident, $key:literal) => {
        #[count_limit(1, "1d", key = $key)]
        async fn $name(inside: u8) -> AppResult<u8> {
            Ok(inside)
        }
    };
}
limited!(through_macro(given), "<given>", 3 - 2, std::convert::identity, { 9 });
limited!(bound_inside, "<inside>");

#[test]
fn come_through_macro_rules_too() {
    alone(async {
        assert_eq!((through_macro(1).await, through_macro(1).await), (9, 1));
        assert_eq!(through_macro(2).await, 9);
        bound_inside(1).await.unwrap();
        bound_inside(2).await.unwrap();
        assert_limited(bound_inside(1).await);
    });
}

fn recursive(depth: u8) -> std::pin::Pin<Box<dyn Future<Output = AppResult<u8>>>> {
    #[count_limit(5, "1d")]
    async fn inner(depth: u8) -> AppResult<u8> {
        if depth == 0 { Ok(0) } else { Ok(recursive(depth - 1).await? + 1) }
    }
    Box::pin(inner(depth))
}

#[test]
fn can_call_themselves() {
    alone(async {
        assert_eq!(recursive(4).await.unwrap(), 4);
        assert_limited(recursive(0).await);
    });
}
