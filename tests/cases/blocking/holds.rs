//! A function that is not async holds its permits until all of its body is dropped, in every edition, and its arguments are dropped
//! after it.

use std::cell::RefCell;
use std::time::Duration;

use ratelimits::{concurrency_limit, rate_limit};

use super::app::{AppError, AppResult, assert_limited, isolated};

const KEY: &str = "a";

/// All limited functions of these tests share this policy: one call at a time.
#[concurrency_limit(1, key = KEY, name = "held")]
fn one_at_a_time() -> AppResult<()> {
    Ok(())
}

/// Records when dropped whether the permit is held.
struct Probe<'a> {
    name: &'static str,
    seen: &'a Seen,
}

/// What probes have seen: their names, and whether the permit was held.
type Seen = RefCell<Vec<(&'static str, bool)>>;

impl<'a> Probe<'a> {
    fn new(name: &'static str, seen: &'a Seen) -> Self {
        Probe { name, seen }
    }

    fn value(&self) -> u8 {
        1
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.seen.borrow_mut().push((self.name, one_at_a_time().is_err()));
    }
}

#[concurrency_limit(1, key = KEY, name = "held")]
fn value(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    Ok(Probe::new("last", seen).value())
}

#[concurrency_limit(1, key = KEY, name = "held")]
fn returned(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    return Ok(Probe::new("last", seen).value());
}

#[concurrency_limit(1, key = KEY, name = "held")]
fn matched(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    match Probe::new("last", seen).value() {
        0 => Err(AppError::Parse),
        value => Ok(value),
    }
}

#[concurrency_limit(1, key = KEY, name = "held")]
fn if_let(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    if let 1 = Probe::new("last", seen).value() { Ok(1) } else { Err(AppError::Parse) }
}

#[rate_limit(1000, key = KEY, settle = |out| u8::from(out.is_ok()))]
#[concurrency_limit(1, key = KEY, name = "held")]
fn settled(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    Ok("0".parse::<u8>()? + Probe::new("last", seen).value())
}

#[concurrency_limit(1, key = KEY, name = "held")]
#[rate_limit(1000, key = KEY, pause_when = |_| Duration::ZERO)]
fn pausing(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    Ok("0".parse::<u8>()? + Probe::new("last", seen).value())
}

#[concurrency_limit(1, key = KEY, name = "held", bind = decision)]
fn bound(seen: &Seen) -> AppResult<u8> {
    let _local = Probe::new("local", seen);
    let value = Probe::new("last", seen).value();
    assert_eq!(decision.limit, 1);
    Ok(value)
}

#[test]
fn locals_and_temporaries_are_dropped_before_the_hold() {
    isolated(|| {
        let seen = Seen::default();
        for function in [value, returned, matched, if_let, settled, pausing, bound] {
            assert_eq!(function(&seen).unwrap(), 1);
            one_at_a_time().unwrap();
            let mut seen = seen.take();
            seen.sort_unstable();
            assert_eq!(seen, [("last", true), ("local", true)]);
        }
    });
}

#[concurrency_limit(1, key = KEY, name = "held")]
fn arguments<'a>(moved: Probe<'a>, kept: Probe<'a>, _: Probe<'a>, mut changed: Probe<'a>) -> AppResult<u8> {
    let moved = { moved };
    changed.name = "changed";
    Ok(moved.value() + kept.value() - changed.value())
}

#[concurrency_limit(1, key = KEY, name = "held", fallback = first, pass_args)]
fn destructured<'a>((first, _second): (Probe<'a>, Probe<'a>), nested: Option<&'a Seen>) -> AppResult<u8> {
    if let Some(seen) = nested {
        let inner = (Probe::new("third", seen), Probe::new("fourth", seen));
        assert_eq!(destructured(inner, None).unwrap(), 2);
        assert_limited(one_at_a_time());
    }
    Ok(first.value())
}

fn first<'a>((first, _): (Probe<'a>, Probe<'a>), _: Option<&'a Seen>) -> AppResult<u8> {
    Ok(first.value() + 1)
}

#[test]
fn arguments_that_the_body_does_not_consume_are_dropped_after_it() {
    isolated(|| {
        let list = Seen::default();
        let probe = |name| Probe::new(name, &list);
        assert_eq!(arguments(probe("moved"), probe("kept"), probe("ignored"), probe("mut")).unwrap(), 1);
        assert_eq!(list.take(), [("moved", true), ("changed", false), ("ignored", false), ("kept", false)]);
        assert_eq!(destructured((probe("first"), probe("second")), Some(&list)).unwrap(), 1);
        let held = list.take().into_iter().filter(|(_, held)| *held).map(|(name, _)| name);
        assert_eq!(held.collect::<Vec<_>>().len(), 2, "those of the call that was refused");
        one_at_a_time().unwrap();
    });
}
