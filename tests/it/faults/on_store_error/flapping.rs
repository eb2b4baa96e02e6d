//! A Redis that comes and goes, and one that only some processes reach: what each process admits on top of the policy.

use std::time::{Duration, Instant};

use ratelimits::{
    DecidedBy, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket,
};

use super::{DAY, absent};
use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;

const SECOND: Duration = Duration::from_secs(1);
const STALL: Duration = Duration::from_millis(400);
const BETWEEN: Duration = Duration::from_millis(800);
const STALLS: u32 = 6;
const TASKS: usize = 8;
/// The burst, capacity or limit of each policy, and what it admits per second.
const PERMITS: u64 = 100;

/// Calls as fast as possible for this long, from several tasks. Counts the calls that Redis and this process admit.
async fn calls(limiter: &Limiter, time: Duration, admitted: &mut [u64; 2]) {
    let begin = Instant::now();
    let tasks = [(); TASKS].map(|()| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            let mut admitted = [0; 2];
            while begin.elapsed() < time {
                match limiter.try_acquire(()).await {
                    Ok(decision) => admitted[usize::from(decision.source == DecidedBy::Local)] += 1,
                    Err(error) => {
                        assert!(error.is_limited(), "{error}");
                        tokio::time::sleep(Duration::from_millis(1)).await;
                    }
                }
            }
            admitted
        })
    });
    for task in tasks {
        let [in_redis, in_process] = task.await.unwrap();
        *admitted = [admitted[0] + in_redis, admitted[1] + in_process];
    }
}

/// The first outage costs a burst, and as much again while Redis regains its own; those that follow cost nothing.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalls_add_one_share_however_many() {
    let server = Server::start();
    let rate = Rate::new(PERMITS, SECOND);
    let policies: [Policy; 7] = [
        TokenBucket::new(rate).burst(PERMITS).into(),
        TokenBucket::new(rate).interval_refill().burst(PERMITS).into(),
        TokenBucket::new(rate).burst(PERMITS).borrow().into(),
        LeakyBucket::new(PERMITS, rate).into(),
        FixedWindow::new(PERMITS, SECOND).into(),
        FixedWindow::new(PERMITS, SECOND).aligned().into(),
        SlidingWindow::new(PERMITS, SECOND).into(),
    ];
    let runs = policies.into_iter().enumerate().map(|(i, policy)| {
        let address = server.address();
        tokio::spawn(async move {
            let proxy = Proxy::to(address).await;
            let registry = Registry::builder().deadline(STALL / 8).connect(&proxy.url()).await.unwrap();
            let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
            let (begin, mut admitted) = (Instant::now(), [0; 2]);
            for _ in 0..STALLS {
                calls(&limiter, BETWEEN, &mut admitted).await;
                proxy.set(Fault::Stall);
                calls(&limiter, STALL, &mut admitted).await;
                proxy.set(Fault::Pass);
            }
            calls(&limiter, BETWEEN, &mut admitted).await;
            let seconds = begin.elapsed().as_secs() + 1;
            // A fixed window may have begun just before, and another end just after.
            let policy_admits = PERMITS * (seconds + 1);
            let [in_redis, in_process] = admitted;
            println!("{policy:?}: {in_redis} + {in_process} of {policy_admits}");
            assert!(in_process > 0, "{policy:?}: the stalls were not noticed");
            assert!(
                in_redis + in_process <= policy_admits + 2 * PERMITS,
                "{in_redis} + {in_process} by {policy:?} in {seconds} s"
            );
        })
    });
    for run in runs.collect::<Vec<_>>() {
        run.await.unwrap();
    }
}

/// The process that reaches Redis admits the policy, and the other one its share of it.
#[tokio::test]
async fn partial_outage_adds_the_share_of_the_process_that_is_cut_off() {
    let server = Server::start();
    let rate = Rate::new(1, DAY);
    let policies: [Policy; 5] = [
        TokenBucket::new(rate).burst(10).into(),
        TokenBucket::new(rate).interval_refill().burst(10).into(),
        LeakyBucket::new(10, rate).into(),
        FixedWindow::new(10, DAY).into(),
        SlidingWindow::new(10, DAY).into(),
    ];
    for (i, policy) in policies.into_iter().enumerate() {
        let builder = || Registry::builder().instances(2);
        let reaches_redis = builder().connect(&server.url()).await.unwrap();
        let mut admitted = [0; 2];
        for registry in [&reaches_redis, &absent(builder()), &reaches_redis] {
            let limiter = registry.limiter(&format!("a{i}"), policy).unwrap();
            for _ in 0..15 {
                if let Ok(decision) = limiter.try_acquire(()).await {
                    admitted[usize::from(decision.source == DecidedBy::Local)] += 1;
                }
            }
        }
        assert_eq!(admitted, [10, 5], "{policy:?}");
    }
}
