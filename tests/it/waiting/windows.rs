//! Windows in Redis are waited for in turn, and only the first in line asks.

use std::time::Duration;

use ratelimits::{FixedWindow, Limiter, Policy, SlidingWindow};

use super::{Counted, warm};
use crate::support::registries::on;
use crate::support::server::Server;

const CALLS: usize = 50;
const LIMIT: u64 = 5;
const PERIOD: Duration = Duration::from_millis(60);

fn windows() -> [Policy; 4] {
    let (fixed, sliding) = (FixedWindow::new(LIMIT, PERIOD), SlidingWindow::new(LIMIT, PERIOD));
    [fixed.into(), fixed.aligned().into(), sliding.into(), sliding.precision(PERIOD / 4).into()]
}

/// Calls one after another, and returns the order in which they are served.
async fn served(limiter: &Limiter, calls: usize) -> Vec<usize> {
    let (sender, mut served) = tokio::sync::mpsc::unbounded_channel();
    for i in 0..calls {
        let (limiter, sender) = (limiter.clone(), sender.clone());
        tokio::spawn(async move {
            limiter.acquire((), 1).await.unwrap();
            sender.send(i).unwrap();
        });
    }
    drop(sender);
    let mut order = Vec::new();
    while let Some(i) = served.recv().await {
        order.push(i);
    }
    order
}

#[tokio::test]
async fn calls_are_served_in_turn_and_one_asks_for_all() {
    let counted = Counted::start().await;
    for (i, policy) in windows().into_iter().enumerate() {
        let limiter = counted.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm(&limiter).await;
        // All are made in one window: of those that a new one is met by, some would be before those that wait.
        while counted.time().await % PERIOD.as_micros() > PERIOD.as_micros() / 4 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let before = counted.calls().await;
        assert_eq!(served(&limiter, CALLS).await, Vec::from_iter(0..CALLS), "{policy:?}");
        // One for each, and a refusal for each window, or each that a log lets in by itself; now and then one more, where a
        // timer was a little ahead of Redis. Would all ask whenever there is room, it were five times as many.
        let asked = counted.calls().await - before;
        println!("{asked} for {CALLS} by {policy:?}");
        assert!(asked <= 3 * CALLS as u64, "{asked} by {policy:?}");
    }
}

#[tokio::test]
async fn where_there_is_room_each_asks_once_and_nobody_waits() {
    let counted = Counted::start().await;
    let day = Duration::from_secs(86_400);
    let sliding = SlidingWindow::new(CALLS as u64, day);
    let windows: [Policy; 3] =
        [FixedWindow::new(CALLS as u64, day).into(), sliding.into(), sliding.precision(day / 4).into()];
    for (i, policy) in windows.into_iter().enumerate() {
        let limiter = counted.registry().limiter(&format!("a{i}"), policy).unwrap();
        warm(&limiter).await;
        let before = counted.calls().await;
        let calls: Vec<_> = (0..CALLS)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.acquire_timeout((), 1, day * 3).await })
            })
            .collect();
        for call in calls {
            assert_eq!(call.await.unwrap().unwrap().waited, Duration::ZERO, "{policy:?}");
        }
        assert_eq!(counted.calls().await, before + CALLS as u64, "{policy:?}");
    }
}

#[test]
fn several_runtimes_wait_for_one_window() {
    let server = Server::shared();
    for policy in windows() {
        let limiter = on(&server).limiter("a", policy).unwrap();
        let threads = [(); 3].map(|()| {
            let limiter = limiter.clone();
            std::thread::spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    // Connected, so that what is asked first is sent first.
                    limiter.peek(()).await.unwrap();
                    served(&limiter, 8).await
                })
            })
        });
        for thread in threads {
            assert_eq!(thread.join().unwrap(), Vec::from_iter(0..8), "{policy:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn aborted_at_random_the_others_are_served() {
    let server = Server::shared();
    for policy in windows() {
        let limiter = on(&server).limiter("a", policy).unwrap();
        let calls: Vec<_> = (0..30)
            .map(|_| {
                let limiter = limiter.clone();
                tokio::spawn(async move { limiter.acquire((), 1).await })
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
                Err(gone) => assert!(gone.is_cancelled()),
            }
        }
    }
}
