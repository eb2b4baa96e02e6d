//! Work that does not yield, on one of the two threads that tasks run on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::scene::{PATIENT, Scene};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_are_answered_while_one_of_two_workers_is_blocked() {
    let scene = Scene::set_within(PATIENT).await;
    for _ in 0..5 {
        let over = Arc::new(AtomicBool::new(false));
        let (begun, begins) = std::sync::mpsc::channel();
        let blocked = {
            let over = Arc::clone(&over);
            tokio::spawn(async move {
                begun.send(()).expect("somebody waits for it");
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(Duration::from_millis(1));
                }
            })
        };
        begins.recv().expect("it begins");
        let calls = scene.crowd(8, Duration::from_millis(200)).await;
        over.store(true, Ordering::Relaxed);
        blocked.await.expect("it ends");
        let wrong = calls.iter().find(|call| call.left.is_err());
        assert!(wrong.is_none(), "{wrong:?}");
    }
    scene.recovers().await;
}
