//! What is left of leases is given back when they end, or their registry does. A process that is killed costs a lease at most.

use ratelimits::{Error, FixedWindow, Limiter, Rate, Registry, TokenBucket, count_limit};
use tokio::task::JoinSet;

use super::{DAY, Fixture, WITHIN, bucket, lease, registry, remaining, until_remaining, window};
use crate::support::processes::{self, Child, Process};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::until::until;

const LIMIT: u64 = 1000;
const LEASE: u64 = 10;
const PROCESSES: usize = 20;
const NAMESPACE: &str = "ending";

#[count_limit(LIMIT, "1d", name = "shared", lease = 10, registry = registry)]
async fn shared(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

/// Calls this often, and returns how many calls were admitted.
async fn call(registry: &Registry, times: u64) -> u64 {
    let mut admitted = 0;
    for _ in 0..times {
        match shared(registry).await {
            Ok(()) => admitted += 1,
            Err(error) => assert!(error.is_limited(), "{error}"),
        }
    }
    admitted
}

fn shared_limiter(server: &Server, namespace: &str) -> Limiter {
    registry(&server.url(), namespace).limiter("shared", FixedWindow::new(LIMIT, DAY)).unwrap()
}

async fn until_left(limiter: &Limiter, expected: u64) {
    until("what is left of leases is given back", WITHIN, async || {
        match limiter.peek(()).await.unwrap().remaining {
            left if left == expected => Ok(()),
            left => Err(format!("{left} permits are left, not {expected}")),
        }
    })
    .await;
}

#[tokio::test]
async fn idle_leases_are_given_back() {
    let fixture = Fixture::start();
    let (registry, limiter) = (fixture.registry(), fixture.window());
    lease(&registry, "a").await;
    until_remaining(&limiter, "a", 98).await;
    // The next ones, too.
    for _ in 0..2 {
        window(&registry, "a").await.unwrap();
    }
    until_remaining(&limiter, "a", 96).await;

    let limiter = fixture.limiter("bucket", TokenBucket::new(Rate::new(100, DAY)).burst(100));
    for _ in 0..2 {
        bucket(&registry).await.unwrap();
    }
    until_left(&limiter, 98).await;
}

#[tokio::test]
async fn registries_that_come_and_go_hold_nothing_back() {
    let fixture = Fixture::start();
    let limiter = shared_limiter(&fixture.server, &fixture.namespace);
    let mut admitted = 0;
    for calls in 1..=20 {
        let registry = fixture.registry();
        admitted += call(&registry, calls).await;
    }
    assert_eq!(admitted, (1..=20).sum::<u64>());
    until_left(&limiter, LIMIT - admitted).await;
}

/// Also one that ends where there is no runtime.
#[test]
fn a_registry_ends_without_a_runtime() {
    let fixture = Fixture::start();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let registry = fixture.registry();
    runtime.block_on(lease(&registry, "a"));
    assert_eq!(runtime.block_on(remaining(&fixture.window(), "a")), 89);
    drop(registry);
    runtime.block_on(until_remaining(&fixture.window(), "a", 98));
}

/// Registries end while their calls spend leases, and while they take them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn spent_permits_are_not_given_back() {
    const TASKS: usize = 8;
    let fixture = Fixture::start();
    let (limiter, random) = (shared_limiter(&fixture.server, &fixture.namespace), Random::seeded());
    let (mut tasks, mut admitted) = (JoinSet::new(), 0);
    for task in 0..TASKS {
        let (url, namespace) = (fixture.server.url(), fixture.namespace.clone());
        let mut random = random.run(task as u64);
        tasks.spawn(async move {
            let (mut admitted, mut goes_on) = (0, true);
            while goes_on {
                let registry = registry(&url, &namespace);
                let callers = (0..1 + random.below(3)).map(|_| {
                    let (registry, calls) = (registry.clone(), 1 + random.below(2 * LEASE));
                    async move { (call(&registry, calls).await, calls) }
                });
                let callers: JoinSet<_> = callers.collect();
                drop(registry);
                for (granted, calls) in callers.join_all().await {
                    admitted += granted;
                    goes_on &= granted == calls;
                }
            }
            admitted
        });
    }
    for granted in tasks.join_all().await {
        admitted += granted;
    }
    assert!(admitted <= LIMIT, "{admitted} calls admitted");
    until_left(&limiter, LIMIT - admitted).await;
    assert_eq!(admitted + call(&fixture.registry(), LIMIT).await, LIMIT);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_processes_lose_a_lease_at_most() {
    if let Some(child) = Child::from_env() {
        let registry = registry(&child.url, NAMESPACE);
        let place = child.barrier("started", PROCESSES).await;
        child.report([call(&registry, 1 + place as u64).await.to_string()]);
        child.barrier("called", PROCESSES).await;
        // Its parent kills it.
        return tokio::time::sleep(WITHIN).await;
    }
    let server = Server::start();
    let limiter = shared_limiter(&server, NAMESPACE);
    let mut killed =
        processes::start(&server, PROCESSES, module_path!(), "killed_processes_lose_a_lease_at_most");
    until("all have called", WITHIN, async || {
        match server.command::<Option<usize>>(&["GET", "barrier called"]).await {
            Some(PROCESSES) => Ok(()),
            called => Err(format!("{called:?} have called")),
        }
    })
    .await;
    let idle = killed.split_off(PROCESSES / 2);
    for process in &mut killed {
        process.kill().await;
    }
    let lines = killed.iter().chain(&idle).flat_map(Process::lines);
    let admitted: u64 = lines.map(|line| line.parse::<u64>().unwrap()).sum();
    assert_eq!(admitted, (1..=PROCESSES as u64).sum::<u64>());
    // Those that live on give back what they have leased.
    let least = LIMIT - admitted - LEASE * killed.len() as u64;
    let left = async || limiter.peek(()).await.unwrap().remaining;
    until("leases are given back", WITHIN, async || match left().await {
        left if left >= least => Ok(()),
        left => Err(format!("{left} permits are left, and should be {least}")),
    })
    .await;
    // Killed later than a second after their last call, they lose nothing.
    drop(idle);
    assert!((least..=LIMIT - admitted).contains(&left().await));
}
