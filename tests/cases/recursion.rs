//! Functions that call themselves, and functions under many others, with the recursion limit as it is.

use std::future::Future;
use std::pin::Pin;

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, alone, assert_limited, text};

#[count_limit(5, "1d")]
async fn boxes_itself(depth: u8) -> AppResult<u8> {
    if depth == 0 {
        return Ok(0);
    }
    Ok(Box::pin(boxes_itself(depth - 1)).await? + 1)
}

#[count_limit(3, "1d", fallback = itself, pass_args)]
async fn falls_back_on_itself(depth: u8, text: Text) -> (u8, Text) {
    let (reached, text) = Box::pin(falls_back_on_itself(depth + 1, text)).await;
    (reached, Text(text.0 + "."))
}

fn itself(depth: u8, text: Text) -> (u8, Text) {
    (depth, text)
}

fn through_another(depth: u8) -> Pin<Box<dyn Future<Output = AppResult<u8>> + Send>> {
    #[rate_limit("1/day", burst = 5)]
    async fn inner(depth: u8) -> AppResult<u8> {
        if depth == 0 { Ok(0) } else { Ok(through_another(depth - 1).await? + 1) }
    }
    Box::pin(inner(depth))
}

#[test]
fn functions_that_call_themselves() {
    alone(async {
        assert_eq!(boxes_itself(4).await.unwrap(), 4);
        assert_limited(boxes_itself(0).await);
        assert_eq!(falls_back_on_itself(0, text("a")).await, (3, text("a...")));
        assert_eq!(through_another(4).await.unwrap(), 4);
        assert_limited(through_another(0).await);
    });
}

/// Each calls the next, none boxed: every layer is a type inside the layer above (lance#8416).
macro_rules! tower {
    ($name:ident $next:ident $($rest:ident)*) => {
        #[count_limit(1, "1d", key = text, fallback = refused, pass_args)]
        #[rate_limit(1000)]
        async fn $name(text: &str, depth: usize) -> AppResult<usize> {
            $next(text, depth + 1).await
        }
        tower!($next $($rest)*);
    };
    ($name:ident) => {
        #[count_limit(1, "1d", key = text)]
        async fn $name(text: &str, depth: usize) -> AppResult<usize> {
            tokio::task::yield_now().await;
            Ok(text.len() + depth)
        }
    };
}
tower! {
    f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 f10 f11 f12 f13
}

async fn refused(text: &str, depth: usize) -> AppResult<usize> {
    tokio::task::yield_now().await;
    Ok(text.len() + depth + 1000)
}

#[test]
fn functions_under_many_others() {
    alone(async {
        assert_eq!(f00("text", 0).await.unwrap(), 4 + 13);
        assert_eq!(f00("text", 0).await.unwrap(), 4 + 1000);
        assert_limited(f13("text", 0).await);
    });
}
