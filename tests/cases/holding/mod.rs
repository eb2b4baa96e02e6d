//! `concurrency_limit`: what runs while a call holds its permits, and what runs after it.
#![allow(
    clippy::unnecessary_wraps,
    clippy::unused_async,
    clippy::unused_self,
    reason = "functions that others call or stand in for"
)]

mod endings;
mod functions;
mod outputs;
mod stacks;
mod temporaries;

use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};

use ratelimits::concurrency_limit;

use super::app::{AppError, AppResult, assert_limited, isolated};

/// All limited functions of these tests share this policy: one call of a key at a time.
#[concurrency_limit(1, key = key, name = "held")]
async fn one_at_a_time(key: &str) -> AppResult<()> {
    Ok(())
}

/// Returns whether a call holds the permit of the key.
fn is_held(key: &str) -> bool {
    match now(one_at_a_time(key)) {
        Ok(()) => false,
        Err(error) => {
            assert!(error.is_limited(), "{error:?}");
            true
        }
    }
}

/// Asserts that the key is free once the future has ended, and returns the output.
#[track_caller]
fn released<T>(key: &str, future: impl Future<Output = T>) -> T {
    let output = now(future);
    assert!(!is_held(key), "{key}");
    output
}

/// Returns the output of a future that is ready at once.
#[track_caller]
fn now<T>(future: impl Future<Output = T>) -> T {
    match poll(pin!(future)) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("pending"),
    }
}

fn poll<T>(future: Pin<&mut impl Future<Output = T>>) -> Poll<T> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Records when dropped whether the permit of its key is held.
struct Probe<'a> {
    name: &'static str,
    key: &'a str,
    seen: &'a Seen,
}

/// What probes have seen: their names, and whether the permit was held.
type Seen = RefCell<Vec<(&'static str, bool)>>;

impl<'a> Probe<'a> {
    fn new(name: &'static str, key: &'a str, seen: &'a Seen) -> Self {
        Probe { name, key, seen }
    }

    fn value(&self) -> u8 {
        1
    }
}

impl Drop for Probe<'_> {
    fn drop(&mut self) {
        self.seen.borrow_mut().push((self.name, is_held(self.key)));
    }
}
