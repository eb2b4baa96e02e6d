//! Beside attributes that see the output, where the body is a nested future.

use std::time::Duration;

use ratelimits::rate_limit;
use tokio::task::yield_now;

use super::*;

#[rate_limit(1000, key = key, settle = |out| u8::from(out.is_ok()))]
#[concurrency_limit(1, key = key, name = "held")]
async fn settled<'a>(key: &'a str, seen: &'a Seen, text: &str) -> AppResult<u8> {
    let _local = Probe::new("local", key, seen);
    yield_now().await;
    let parsed: u8 = text.parse()?;
    Ok(Probe::new("last", key, seen).value() + parsed)
}

#[concurrency_limit(1, key = key, name = "held")]
#[rate_limit(1000, key = key, charge_when = Result::is_err, pause_when = |_| Duration::ZERO)]
async fn charged<'a>(key: &'a str, seen: &'a Seen, text: &str) -> AppResult<u8> {
    let _local = Probe::new("local", key, seen);
    yield_now().await;
    let parsed: u8 = text.parse()?;
    Ok(Probe::new("last", key, seen).value() + parsed)
}

#[concurrency_limit(1, key = key, name = "held")]
#[rate_limit(1000, key = key, pause_when = |_| Duration::ZERO)]
async fn pausing<'a>(key: &'a str, seen: &'a Seen, text: &str) -> AppResult<u8> {
    let _local = Probe::new("local", key, seen);
    yield_now().await;
    let parsed: u8 = text.parse()?;
    Ok(Probe::new("last", key, seen).value() + parsed)
}

/// Asserts what a function does that has this type.
macro_rules! assert_releases {
    ($($function:ident)*) => {$(
        let (seen, all_held) = (Seen::default(), |seen: &Seen| seen.take().iter().all(|(_, held)| *held));
        assert_eq!($function("a", &seen, "1").await.unwrap(), 2);
        assert!(seen.borrow().len() == 2 && all_held(&seen) && !is_held("a"), stringify!($function));
        assert!(matches!($function("a", &seen, "x").await, Err(AppError::Parse)));
        assert!(seen.borrow().len() == 1 && all_held(&seen) && !is_held("a"), stringify!($function));
        let mut future = Box::pin($function("a", &seen, "1"));
        assert!(poll(future.as_mut()).is_pending() && is_held("a"));
        drop(future);
        assert!(seen.borrow().len() == 1 && all_held(&seen) && !is_held("a"), stringify!($function));
    )*};
}

#[test]
fn functions_whose_output_is_seen() {
    isolated(async {
        assert_releases!(settled charged pausing);
    });
}
