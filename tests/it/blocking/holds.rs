//! What functions that are not async hold, correct and pause when they end.

use std::panic::catch_unwind;
use std::sync::mpsc::channel;

use ratelimits::{ConcurrencyLimit, concurrency_limit, count_limit};

use super::*;
use crate::support::until::until;

/// Asserts that so much is left of a key, soon in Redis.
fn assert_remain(limiter: &Limiter, key: &str, expected: u64) {
    runtime().block_on(until("the permits are as they should be", MINUTE, async || {
        let remaining = limiter.peek(key).await.map_err(|error| error.to_string())?.remaining;
        if remaining == expected { Ok(()) } else { Err(format!("{remaining} remain, not {expected}")) }
    }));
}

fn held(registry: &Registry) -> Limiter {
    registry.limiter("blocking.held", ConcurrencyLimit::new(1)).unwrap()
}

#[concurrency_limit(1, key = key, name = "blocking.held", timeout = "1m")]
fn one_at_a_time<T>(key: &str, body: impl FnOnce() -> T) -> Result<T, Error> {
    Ok(body())
}

#[concurrency_limit(1, key = key, name = "blocking.held")]
fn question_mark(key: &str, registry: &Registry, text: &str) -> Result<u8, Box<dyn std::error::Error>> {
    assert_eq!(held(registry).blocking_try_acquire(key).unwrap_err().retry_after(), None);
    if text.is_empty() {
        return Ok(0);
    }
    Ok(text.parse()?)
}

#[count_limit(1000, "1d", key = key, settle = |out| u8::from(out.is_ok()))]
#[concurrency_limit(1, key = key, name = "blocking.held")]
fn seen(key: &str, text: &str) -> Result<u8, Box<dyn std::error::Error>> {
    if text.is_empty() {
        return Ok(0);
    }
    Ok(text.parse()?)
}

#[concurrency_limit(1, key = key, name = "blocking.held", bind = decision)]
fn kept(key: &str) -> Result<ratelimits::Decision, Error> {
    Ok(decision)
}

#[test]
fn functions_hold_until_they_end() {
    on_each_registry(|registry, _| {
        registry.sync_scope(|| {
            let limiter = &held(&registry);
            let free = |key| assert_remain(limiter, key, 1);
            one_at_a_time("value", || assert_remain(limiter, "value", 0)).unwrap();
            free("value");
            assert_eq!(question_mark("early", &registry, "").unwrap(), 0);
            free("early");
            assert!(question_mark("error", &registry, "x").unwrap_err().is::<std::num::ParseIntError>());
            free("error");
            assert!(catch_unwind(|| one_at_a_time("panic", || panic!("the body"))).is_err());
            free("panic");
            for text in ["1", "", "x"] {
                assert_eq!(seen("seen", text).is_ok(), text != "x");
                free("seen");
            }
            let decision = kept("kept").unwrap();
            assert!(kept("kept").unwrap_err().is_limited());
            drop(decision);
            free("kept");
        });
    });
}

#[test]
fn functions_wait_for_those_that_hold() {
    on_each_registry(|registry, _| {
        let (release, released) = channel::<()>();
        let (started, has_started) = channel();
        thread::scope(|scope| {
            let wait = move || {
                started.send(()).unwrap();
                released.recv().unwrap();
            };
            let on = &registry;
            let holder = scope.spawn(move || on.sync_scope(|| one_at_a_time("a", wait)));
            has_started.recv().unwrap();
            let waiter = scope.spawn(|| registry.sync_scope(|| one_at_a_time("a", || ())));
            assert_remain(&held(&registry), "a", 0);
            assert!(!waiter.is_finished());
            release.send(()).unwrap();
            holder.join().unwrap().unwrap();
            waiter.join().unwrap().unwrap();
        });
    });
}

/// A call that waits in a task for one that waits on the same thread would wait for ever.
#[test]
fn functions_in_async_code_do_not_wait_for_those_that_hold() {
    let registry = Registry::in_memory();
    let current_thread = Builder::new_current_thread().enable_all().build().unwrap();
    let decision = registry.sync_scope(|| kept("a")).unwrap();
    let call = registry.scope(async { one_at_a_time("a", || ()) });
    assert!(is_refused_as_async(current_thread.block_on(call)));
    drop(decision);
}

#[count_limit(10, "1d", key = key, charge_when = |out| *out == Some(1), fallback = |_| None)]
fn charged(key: &str, out: u8) -> Option<u8> {
    (out < 9).then_some(out)
}

#[count_limit(10, "1d", key = key, cost = 3, settle = |out| *out, fallback = |_| 0)]
fn settled(key: &str, out: u8) -> u8 {
    out
}

#[count_limit(10, "1d", key = key, pause_when = |out| out.as_ref().err().and_then(|paused| paused.0))]
fn pausing(key: &str, pause: Option<Duration>) -> Result<(), Paused> {
    pause.map_or(Ok(()), |pause| Err(Paused(Some(pause))))
}

#[derive(Debug)]
struct Paused(Option<Duration>);

impl From<Error> for Paused {
    fn from(error: Error) -> Self {
        Paused(error.retry_after())
    }
}

/// Also where no runtime is, and the call has ended before Redis hears of it.
#[test]
fn outputs_correct_charges_and_pause_keys() {
    on_each_registry(|registry, _| {
        let window = |name: &str| {
            let name = format!("{}::{name}", module_path!());
            registry.limiter(&name, FixedWindow::new(10, 1440 * MINUTE)).unwrap()
        };
        registry.sync_scope(|| {
            assert_eq!([1, 2, 9].map(|out| charged("a", out)), [Some(1), Some(2), None]);
            assert_remain(&window("charged"), "a", 9);
            assert_eq!([1, 0, 5].map(|out| settled("a", out)), [1, 0, 5]);
            assert_remain(&window("settled"), "a", 4);
            pausing("a", None).unwrap();
            pausing("a", Some(MINUTE)).unwrap_err();
            runtime().block_on(until("the key is paused", MINUTE, async || {
                let peeked = window("pausing").peek("a").await.map_err(|error| error.to_string())?;
                peeked.retry_after.map(drop).ok_or_else(|| "no pause".to_owned())
            }));
            assert!(pausing("a", None).unwrap_err().0.is_some());
        });
    });
}
