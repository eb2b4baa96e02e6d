//! Processes that fork without an `exec`. The child has only the thread that forked.
#![expect(unsafe_code, reason = "std has no fork")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, Error, FixedWindow, Registry};
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;

const URL: &str = "RATELIMITS_TEST_FORKS";

/// After so many seconds a child that hangs is killed.
const HANGS: u32 = 10;

unsafe extern "C" {
    safe fn alarm(seconds: u32) -> u32;
    fn fork() -> i32;
    safe fn _exit(status: i32) -> !;
    fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
}

/// Returns whether this holds in a forked child.
fn holds_in_child(check: impl FnOnce() -> bool) -> bool {
    // SAFETY: of the two other threads, the test harness waits, and that of the runtime is idle. Neither holds a lock.
    let child = unsafe { fork() };
    if child == 0 {
        alarm(HANGS);
        // A panic would end only the thread.
        let holds = catch_unwind(AssertUnwindSafe(check));
        _exit(i32::from(!holds.unwrap_or(false)));
    }
    let mut status = 0;
    // SAFETY: the status is written to a valid place.
    assert_eq!(unsafe { waitpid(child, &raw mut status, 0) }, child);
    status == 0
}

/// Runs a test in a process of its own, so that it forks while no other test holds a lock.
fn run_alone(test: &str) {
    let server = Server::start();
    let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
    let output = command.args([test, "--exact"]).env(URL, server.url()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn blocking_calls_to_redis_fail_in_a_forked_child() {
    let Ok(url) = std::env::var(URL) else {
        return run_alone("forked::blocking_calls_to_redis_fail_in_a_forked_child");
    };
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&url).unwrap();
    let [remote, local] = [registry, Registry::in_memory()]
        .map(|registry| registry.limiter("a", FixedWindow::new(9, Duration::from_secs(60))).unwrap());
    let call = || remote.blocking_try_acquire("a");
    // The child starts its own thread if there was none.
    assert!(holds_in_child(|| call().is_ok()));
    call().unwrap();
    let is_refused =
        |error: &Error| matches!(error, Error::Store(error) if error.to_string().contains("forked"));
    assert!(holds_in_child(|| call().is_err_and(|error| is_refused(&error))));
    assert!(holds_in_child(|| local.blocking_try_acquire("a").is_ok()), "it needs no thread");
    call().unwrap();
}

/// The child has a copy of what its parent knows of its calls, and no thread that would say that its own still run.
#[test]
fn children_end_no_call_of_their_parent_and_hold_nothing_in_redis() {
    let Ok(url) = std::env::var(URL) else {
        return run_alone("forked::children_end_no_call_of_their_parent_and_hold_nothing_in_redis");
    };
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&url).unwrap();
    let exports = registry.limiter("exports", ConcurrencyLimit::new(3)).unwrap();
    let window = registry.limiter("window", FixedWindow::new(9, Duration::from_secs(60))).unwrap();
    let runtime = || Builder::new_current_thread().enable_all().build().unwrap();
    let parent = runtime();
    let take = || parent.block_on(exports.try_acquire("key")).unwrap();
    let remaining = |runtime: &Runtime| runtime.block_on(exports.peek("key")).unwrap().remaining;
    let mut held = Some([take(), take()]);
    assert_eq!(remaining(&parent), 1);
    let is_refused =
        |error: &Error| matches!(error, Error::Store(error) if error.to_string().contains("forked"));
    assert!(holds_in_child(|| {
        let child = runtime();
        let taken = child.block_on(exports.try_acquire("key"));
        child.block_on(async { drop(held.take()) });
        // What is sent soon is sent by then.
        child.block_on(async { sleep(Duration::from_millis(100)).await });
        let other = child.block_on(window.try_acquire("key"));
        taken.is_err_and(|error| is_refused(&error)) && remaining(&child) == 1 && other.is_ok()
    }));
    assert_eq!(remaining(&parent), 1);
    parent.block_on(async { drop(held) });
    assert!((0..500).any(|_| {
        parent.block_on(async { sleep(Duration::from_millis(10)).await });
        remaining(&parent) == 3
    }));
}
