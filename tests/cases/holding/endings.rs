//! However a body ends, its call releases then.

use std::future::pending;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;

use ratelimits::Registry;
use tokio::task::yield_now;

use super::*;

#[derive(Clone, Copy, Debug)]
enum Ending {
    Value,
    Return,
    QuestionMark,
    Macro,
    Loop,
    Panic,
}

macro_rules! bail {
    ($value:expr) => {
        return Ok($value)
    };
}

#[concurrency_limit(1, key = key, name = "held")]
async fn ends(key: &str, ending: Ending) -> AppResult<u8> {
    assert!(is_held(key));
    let parsed: u8 = "5".parse()?;
    match ending {
        Ending::Value => {}
        Ending::Return => return Ok(parsed + 1),
        Ending::QuestionMark => {
            "x".parse::<u8>()?;
        }
        Ending::Macro => bail!(parsed + 2),
        Ending::Loop => loop {
            if is_held(key) {
                bail!(parsed + 3);
            }
        },
        Ending::Panic => panic!("the case"),
    }
    Ok(parsed)
}

#[test]
fn values_and_early_returns() {
    isolated(async {
        for (ending, value) in [
            (Ending::Value, 5),
            (Ending::Return, 6),
            (Ending::Macro, 7),
            (Ending::Loop, 8),
            (Ending::Value, 5),
        ] {
            assert_eq!(released("a", ends("a", ending)).unwrap(), value, "{ending:?}");
        }
        assert!(matches!(released("a", ends("a", Ending::QuestionMark)), Err(AppError::Parse)));
    });
}

#[concurrency_limit(1, key = key, name = "held")]
async fn panics_after(key: &str, yields: u8) -> AppResult<u8> {
    for _ in 0..yields {
        yield_now().await;
    }
    panic!("the case")
}

#[test]
fn panics() {
    isolated(async {
        let caught = catch_unwind(AssertUnwindSafe(|| now(ends("a", Ending::Panic))));
        assert!(caught.is_err() && !is_held("a"));
        // The panic alone releases, while the future is there still.
        let mut future = Box::pin(panics_after("a", 1));
        assert!(poll(future.as_mut()).is_pending() && is_held("a"));
        assert!(catch_unwind(AssertUnwindSafe(|| poll(future.as_mut()))).is_err());
        assert!(!is_held("a"));
        drop(future);
        assert!(!is_held("a"));
        let task = tokio::spawn(async { Registry::in_memory().scope(panics_after("a", 2)).await });
        assert!(task.await.unwrap_err().is_panic());
    });
}

#[concurrency_limit(1, key = key, name = "held")]
async fn never_ends(key: &str) -> AppResult<u8> {
    let _inner = pin!(pending::<()>());
    pending().await
}

#[test]
fn futures_that_are_dropped() {
    isolated(async {
        // Unpolled, it holds nothing.
        let unpolled = never_ends("a");
        assert!(!is_held("a"));
        drop(unpolled);
        let mut future = Box::pin(never_ends("a"));
        for _ in 0..3 {
            assert!(poll(future.as_mut()).is_pending() && is_held("a") && !is_held("b"));
        }
        assert_limited(now(ends("a", Ending::Value)));
        drop(future);
        assert_eq!(released("a", ends("a", Ending::Value)).unwrap(), 5);
    });
}

#[test]
fn selected_away() {
    isolated(async {
        for _ in 0..3 {
            tokio::select! {
                biased;
                _ = never_ends("a") => panic!("it ended"),
                () = async {
                    assert!(is_held("a"));
                    yield_now().await;
                    assert!(is_held("a"));
                } => {}
            }
            assert!(!is_held("a"));
        }
    });
}

#[test]
fn aborted_tasks() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let registry = Registry::in_memory();
        let on = registry.clone();
        let task = tokio::spawn(async move { on.scope(never_ends("a")).await });
        yield_now().await;
        registry.scope(async { assert!(is_held("a")) }).await;
        task.abort();
        assert!(task.await.unwrap_err().is_cancelled());
        registry.scope(async { assert!(!is_held("a")) }).await;
    });
}

#[concurrency_limit(1, key = key, name = "held", fallback = refused, pass_args)]
async fn diverges(key: &str) -> ! {
    pending::<()>().await;
    unreachable!()
}

async fn refused(key: &str) -> ! {
    panic!("{key} is held")
}

#[test]
fn bodies_that_never_return() {
    isolated(async {
        let mut first = Box::pin(diverges("a"));
        assert!(poll(first.as_mut()).is_pending());
        let mut second = Box::pin(diverges("a"));
        assert!(catch_unwind(AssertUnwindSafe(|| poll(second.as_mut()).is_ready())).is_err());
        assert!(is_held("a"));
        drop(first);
        assert!(!is_held("a"));
    });
}

#[concurrency_limit(1, key = key, name = "held", timeout = "10s")]
async fn waits_for_a_permit(key: &str) -> AppResult<bool> {
    yield_now().await;
    Ok(is_held(key))
}

#[test]
fn calls_that_wait() {
    isolated(async {
        let mut holding = Box::pin(never_ends("a"));
        assert!(poll(holding.as_mut()).is_pending());
        // Dropped while it waits, it holds nothing later.
        let mut dropped = Box::pin(waits_for_a_permit("a"));
        assert!(poll(dropped.as_mut()).is_pending());
        drop(dropped);
        let mut waiting = Box::pin(waits_for_a_permit("a"));
        assert!(poll(waiting.as_mut()).is_pending());
        drop(holding);
        assert!(waiting.await.unwrap() && !is_held("a"));
    });
}

#[concurrency_limit(3, key = key)]
async fn recursive(key: &str, depth: u8) -> AppResult<u8> {
    if depth == 0 {
        return Ok(0);
    }
    yield_now().await;
    Ok(Box::pin(recursive(key, depth - 1)).await? + 1)
}

#[test]
fn recursion_holds_a_permit_for_each_level() {
    isolated(async {
        for _ in 0..2 {
            assert_eq!(recursive("a", 2).await.unwrap(), 2);
            assert_limited(recursive("a", 3).await);
        }
    });
}
