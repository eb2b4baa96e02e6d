//! Blocking work on one of the runtime's two worker threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::fixture::{Fixture, LONG_DEADLINE};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_succeed_while_one_worker_is_blocked() {
    let fixture = Fixture::start_with_deadline(LONG_DEADLINE).await;
    for _ in 0..5 {
        let stop = Arc::new(AtomicBool::new(false));
        let (started, wait) = std::sync::mpsc::channel();
        let blocking = {
            let stop = Arc::clone(&stop);
            tokio::spawn(async move {
                started.send(()).expect("the test waits");
                while !stop.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        };
        wait.recv().expect("it starts");
        let calls = fixture.crowd(8, Duration::from_millis(200)).await;
        stop.store(true, Ordering::Relaxed);
        blocking.await.expect("it ends");
        let failed = calls.iter().find(|call| call.remaining.is_err());
        assert!(failed.is_none(), "{failed:?}");
    }
    fixture.recovers().await;
}
