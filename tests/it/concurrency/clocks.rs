//! Holds do not depend on the time: nothing else may happen to a call that ends where another time is read.
#![cfg(feature = "test-util")]

use std::thread;
use std::time::Duration;

use ratelimits::{ConcurrencyLimit, FixedWindow, Registry};
use tokio::time::advance;

const HOUR: Duration = Duration::from_secs(3600);

/// A thread without a runtime reads the real time, which is earlier than that of a test that has advanced its own.
#[tokio::test(start_paused = true)]
async fn calls_end_on_threads_with_an_earlier_time() {
    let registry = Registry::in_memory();
    let exports = registry.limiter("clocks", ConcurrencyLimit::new(3)).unwrap();
    let window = registry.limiter("window", FixedWindow::new(9, HOUR)).unwrap();
    exports.peek("key").await.unwrap();
    advance(HOUR).await;
    let first = exports.try_acquire("key").await.unwrap();
    let listed = registry.try_acquire_all([exports.charge("key"), window.charge("key")]).await.unwrap();
    let in_thread = exports.clone();
    let taken = thread::spawn(move || {
        let taken = in_thread.blocking_try_acquire("key").unwrap();
        assert!(in_thread.blocking_try_acquire("key").is_err());
        drop(first);
        drop(listed);
        taken
    });
    let taken = taken.join().unwrap();
    assert_eq!(exports.peek("key").await.unwrap().remaining, 2);
    drop(taken);
    assert_eq!(exports.peek("key").await.unwrap().remaining, 3);
}
