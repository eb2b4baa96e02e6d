//! Recursion and deep call stacks, at the default `recursion_limit`.

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, assert_limited, isolated, text};

#[count_limit(5, "1d")]
async fn boxed(depth: u8) -> AppResult<u8> {
    if depth == 0 {
        return Ok(0);
    }
    Ok(Box::pin(boxed(depth - 1)).await? + 1)
}

#[count_limit(3, "1d", fallback = stop, pass_args)]
async fn with_fallback(depth: u8, text: Text) -> (u8, Text) {
    let (reached, text) = Box::pin(with_fallback(depth + 1, text)).await;
    (reached, Text(text.0 + "."))
}

fn stop(depth: u8, text: Text) -> (u8, Text) {
    (depth, text)
}

#[test]
fn recursive_functions() {
    isolated(async {
        assert_eq!(boxed(4).await.unwrap(), 4);
        assert_limited(boxed(0).await);
        assert_eq!(with_fallback(0, text("a")).await, (3, text("a...")));
    });
}

/// Each function calls the next without boxing, so that the types nest (lance#8416).
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
fn deep_call_stacks() {
    isolated(async {
        assert_eq!(f00("text", 0).await.unwrap(), 4 + 13);
        assert_eq!(f00("text", 0).await.unwrap(), 4 + 1000);
        assert_limited(f13("text", 0).await);
    });
}
