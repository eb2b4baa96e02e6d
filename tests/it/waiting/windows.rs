//! Calls wait for windows in a queue, and only the first one sends requests.

use std::time::Duration;

use ratelimits::{FixedWindow, Limiter, Policy, SlidingWindow};

use super::{CountingServer, warm_up};
use crate::support::registries::on;
use crate::support::server::Server;

const CALLS: usize = 30;
const LIMIT: u64 = 5;
/// A busy machine may stop a test for a part of this.
const PERIOD: Duration = Duration::from_millis(300);

fn windows() -> [Policy; 4] {
    let (fixed, sliding) = (FixedWindow::new(LIMIT, PERIOD), SlidingWindow::new(LIMIT, PERIOD));
    [fixed.into(), fixed.aligned().into(), sliding.into(), sliding.precision(PERIOD / 4).into()]
}

/// Spawns calls one after another, and returns the order in which they are admitted.
async fn admission_order(limiter: &Limiter, calls: usize) -> Vec<usize> {
    let (sender, mut admitted) = tokio::sync::mpsc::unbounded_channel();
    for i in 0..calls {
        let (limiter, sender) = (limiter.clone(), sender.clone());
        tokio::spawn(async move {
            limiter.acquire(()).await.unwrap();
            sender.send(i).unwrap();
        });
    }
    drop(sender);
    let mut order = Vec::new();
    while let Some(i) = admitted.recv().await {
        order.push(i);
    }
    order
}

/// Waits for the first quarter of an aligned window. Calls that start in two windows are out of order: the second one admits
/// those that start in it before those that wait.
async fn window_begins(server: &CountingServer) {
    while server.time().await % PERIOD.as_micros() > PERIOD.as_micros() / 4 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn window_queues_are_fair_and_save_requests() {
    let server = CountingServer::start().await;
    for (i, policy) in windows().into_iter().enumerate() {
        let limiter = server.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm_up(&limiter).await;
        window_begins(&server).await;
        let before = server.calls().await;
        assert_eq!(admission_order(&limiter, CALLS).await, Vec::from_iter(0..CALLS), "{policy:?}");
        // One request per call, and a refusal per window, or per call in a log; now and then one more, where a timer was a
        // little ahead of Redis. If all calls sent requests, it would be five times as many.
        let requests = server.calls().await - before;
        println!("{requests} requests for {CALLS} calls by {policy:?}");
        assert!(requests <= 3 * CALLS as u64, "{requests} by {policy:?}");
    }
}

#[tokio::test]
async fn calls_within_the_limit_send_one_request() {
    let server = CountingServer::start().await;
    let day = Duration::from_secs(86_400);
    let sliding = SlidingWindow::new(CALLS as u64, day);
    let windows: [Policy; 3] =
        [FixedWindow::new(CALLS as u64, day).into(), sliding.into(), sliding.precision(day / 4).into()];
    for (i, policy) in windows.into_iter().enumerate() {
        let limiter = server.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm_up(&limiter).await;
        let before = server.calls().await;
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.acquire_timeout((), day * 3).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().waited, Duration::ZERO, "{policy:?}");
        }
        assert_eq!(server.calls().await, before + CALLS as u64, "{policy:?}");
    }
}

#[tokio::test]
async fn runtimes_can_share_a_window_queue() {
    let server = CountingServer::start().await;
    for (i, policy) in windows().into_iter().enumerate() {
        let limiter = server.registry().limiter(&format!("a{i}"), policy).unwrap();
        window_begins(&server).await;
        let threads = [(); 3].map(|()| {
            let limiter = limiter.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    // Connected, so that requests are sent in order.
                    limiter.peek(()).await.unwrap();
                    admission_order(&limiter, 8).await
                })
            })
        });
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Vec::from_iter(0..8), "{policy:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_calls_do_not_block_a_window_queue() {
    let server = Server::shared();
    for policy in windows() {
        let limiter = on(&server).limiter("a", policy).unwrap();
        let calls: Vec<_> = (0..30)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.acquire(()).await })
            })
            .collect();
        for (i, call) in calls.iter().enumerate() {
            if i % 3 != 1 {
                tokio::time::sleep(Duration::from_millis(3)).await;
                call.abort();
            }
        }
        for call in calls {
            match call.await {
                Ok(decision) => drop(decision.unwrap()),
                Err(error) => assert!(error.is_cancelled()),
            }
        }
    }
}
