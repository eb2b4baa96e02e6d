//! Floods of keys that are each used once, in the memory store: it stays within its cap, keeps limited keys and those of other
//! policies, evicts keys that are close to expiry, and uses no more memory than the cap explains.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Clock, Key, MemoryStore};
use ratelimits::{FixedWindow, Limiter, OnStoreError, Policy, Rate, Registry, SlidingWindow, TokenBucket};

use crate::support::budget::budget;

const START: u64 = 1_700_000_000_000_000;
const HOUR: Duration = Duration::from_secs(3600);

/// Keys that are limited before a flood.
const LIMITED: u64 = 1000;

/// Names the policy that a child process floods.
const CHILD: &str = "RATELIMITS_FLOOD_CHILD";

/// The bytes of a key in the store: its hash, expiry, state and policy, and the places where it is found.
const SLOT: u64 = 96;

fn cap() -> u64 {
    budget(30_000, 250_000)
}

fn flood_keys() -> u64 {
    budget(60_000, 2_500_000)
}

/// Policies that admit one permit in this time.
fn policies(time: Duration) -> [(&'static str, Policy); 3] {
    [
        ("token-bucket", TokenBucket::new(Rate::new(1, time)).burst(1).into()),
        ("fixed-window", FixedWindow::new(1, time).into()),
        ("sliding-log", SlidingWindow::new(1, time).into()),
    ]
}

fn specs(time: Duration) -> [(&'static str, AlgorithmSpec); 3] {
    policies(time).map(|(name, policy)| (name, policy.spec().expect("a valid policy")))
}

fn charge(key: String, spec: AlgorithmSpec) -> Charge {
    Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow: false }
}

/// A store whose clock the test sets.
struct FloodedStore {
    store: MemoryStore,
    time: Arc<AtomicU64>,
    cap: u64,
}

impl FloodedStore {
    fn new(cap: u64) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        FloodedStore { store: MemoryStore::new(cap as usize, Clock::manual(Arc::clone(&time))), time, cap }
    }

    /// Returns whether a call is admitted, after checking that the store is within its cap.
    fn admits(&self, key: impl ToString, spec: AlgorithmSpec) -> bool {
        let admitted = self.store.decide(&[charge(key.to_string(), spec)]).admitted;
        assert!(self.store.len() as u64 <= self.cap, "{} keys", self.store.len());
        admitted
    }

    /// Makes some keys limited.
    fn limit_keys(&self, spec: AlgorithmSpec) {
        assert!((0..LIMITED).all(|key| self.admits(format!("limited {key}"), spec)));
    }

    fn assert_still_limited(&self, name: &str, spec: AlgorithmSpec) {
        let evicted = (0..LIMITED).find(|key| self.admits(format!("limited {key}"), spec));
        assert_eq!(evicted, None, "{name}: a limited key was evicted");
    }

    fn advance_a_microsecond(&self) {
        self.time.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn flood_up_to_cap_evicts_nothing() {
    let cap = cap();
    for (name, spec) in specs(HOUR) {
        let flooded = FloodedStore::new(cap);
        flooded.limit_keys(spec);
        for key in 0..cap - LIMITED {
            assert!(flooded.admits(key, spec));
            // Later keys expire later.
            flooded.advance_a_microsecond();
        }
        assert_eq!((flooded.store.len() as u64, flooded.store.evicted()), (cap, 0), "{name}");
        flooded.assert_still_limited(name, spec);
    }
}

#[test]
fn later_expiry_survives_flood() {
    let keys = flood_keys();
    for ((name, lasting), (_, spec)) in specs(2 * HOUR).into_iter().zip(specs(HOUR)) {
        let flooded = FloodedStore::new(cap());
        flooded.limit_keys(lasting);
        for key in 0..keys {
            assert!(flooded.admits(key, spec));
            flooded.advance_a_microsecond();
            if key % 10_000 == 0 {
                flooded.assert_still_limited(name, lasting);
            }
        }
        flooded.assert_still_limited(name, lasting);
        // Only keys of the flood are evicted.
        assert_eq!(flooded.store.evicted() + flooded.store.len() as u64, keys + LIMITED, "{name}");
    }
}

#[test]
fn earlier_expiry_is_evicted_first() {
    let cap = cap();
    for ((name, ending), (_, spec)) in specs(HOUR / 2).into_iter().zip(specs(HOUR)) {
        let flooded = FloodedStore::new(cap);
        for key in 0..cap {
            let spec = if key % 2 == 0 { ending } else { spec };
            assert!(flooded.admits(key, spec));
        }
        let keys = cap / 4;
        assert!((0..keys).all(|key| flooded.admits(format!("more {key}"), spec)));
        assert_eq!(flooded.store.evicted(), keys, "{name}");
        // At most 1 in 100 of those that expire later, as a quarter still expires earlier.
        let late = (0..cap).filter(|key| key % 2 == 1).filter(|key| flooded.admits(key, spec)).count() as u64;
        assert!(late <= keys / 100, "{name}: {late} of {keys}");
    }
}

/// Guesses a password before, during and after a flood of the other policy's keys. Returns how many guesses were admitted.
async fn guesses(registry: &Registry, keys: u64) -> u64 {
    let logins = registry.limiter("logins", SlidingWindow::new(5, HOUR / 4)).expect("a valid policy");
    let quota = registry.limiter("quota", FixedWindow::new(1000, 24 * HOUR)).expect("a valid policy");
    guesses_during(&logins, &quota, keys).await
}

async fn guesses_during(logins: &Limiter, quota: &Limiter, keys: u64) -> u64 {
    let mut admitted = 0;
    for key in 0..keys {
        if key.is_multiple_of(1000) {
            admitted += u64::from(logins.try_acquire("ann").await.is_ok());
        }
        let decision = quota.try_acquire(key).await;
        // Few keys are still there from before.
        assert!(decision.expect("the quota has room").remaining >= 998);
    }
    admitted
}

#[tokio::test]
async fn flood_of_one_policy_keeps_the_keys_of_others() {
    let registry = Registry::builder().max_keys(cap() as usize).in_memory();
    assert_eq!(guesses(&registry, flood_keys()).await, 5);
}

#[tokio::test]
async fn flood_with_one_prefix_keeps_the_keys_of_others() {
    let registry = Registry::builder().max_keys(cap() as usize).in_memory();
    let calls = |limit, period, prefix| {
        let limiter = registry.limiter("calls", FixedWindow::new(limit, period)).expect("a valid policy");
        // Whatever else of it changes later.
        limiter.prefix("other").prefix(prefix).on_store_error(OnStoreError::Deny).function("f")
    };
    let (logins, quota) = (calls(5, HOUR / 4, "logins"), calls(1000, 24 * HOUR, "quota"));
    assert_eq!(guesses_during(&logins, &quota, flood_keys()).await, 5);
}

#[tokio::test]
async fn flood_during_an_outage_keeps_the_keys_of_others() {
    let registry =
        Registry::builder().max_keys(3000).connect_lazy("redis://127.0.0.1:1").expect("a valid URL");
    assert_eq!(guesses(&registry, 20_000).await, 5);
}

#[tokio::test]
async fn policy_gets_room_in_a_store_that_another_has_filled() {
    let registry = Registry::builder().max_keys(cap() as usize).in_memory();
    let quota = registry.limiter("quota", FixedWindow::new(1000, 24 * HOUR)).expect("a valid policy");
    for key in 0..2 * cap() {
        assert!(quota.try_acquire(key).await.is_ok());
    }
    assert_eq!(guesses(&registry, flood_keys()).await, 5);
}

/// Runs each flood in a separate process, so that it measures only the memory of this flood.
#[test]
fn memory_is_bounded_by_cap() {
    if let Ok(name) = std::env::var(CHILD) {
        let (_, policy) = policies(HOUR).into_iter().find(|(policy, _)| *policy == name).expect("a policy");
        return flood(&name, policy, flood_keys(), cap());
    }
    for (name, _) in policies(HOUR) {
        let mut command = Command::new(std::env::current_exe().expect("the path of the test"));
        command.args(["flood::memory_is_bounded_by_cap", "--exact", "--nocapture"]).env(CHILD, name);
        let output = command.output().expect("the test runs again");
        let stdout = String::from_utf8_lossy(&output.stdout);
        stdout.lines().filter(|line| line.contains(name)).for_each(|line| println!("{line}"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && stdout.contains("1 passed"), "{stdout}\n{stderr}");
    }
}

/// Floods a store and checks how much memory it needs.
fn flood(name: &str, policy: Policy, keys: u64, cap: u64) {
    let spec = policy.spec().expect("a valid policy");
    let store = MemoryStore::new(cap as usize, Clock::process());
    let before = process_memory("VmRSS:");
    for key in 0..keys {
        let admitted = store.decide(&[charge(format!("user-{key}"), spec)]).admitted;
        assert!(admitted && store.len() as u64 <= cap);
    }
    let (after, peak) = (process_memory("VmRSS:"), process_memory("VmHWM:"));
    assert_eq!(store.evicted() + store.len() as u64, keys);
    let (Some(before), Some(after), Some(peak)) = (before, after, peak) else {
        println!("{name}: SKIPPED the memory bound, which needs Linux");
        return;
    };
    let [grown, peak] = [after, peak].map(|bytes| bytes.saturating_sub(before));
    println!(
        "{name}: {} KiB more, {} KiB at peak: {} and {} bytes per key",
        grown / 1024,
        peak / 1024,
        grown / cap,
        peak / cap
    );
    // Logs are on the heap. The rest of the process is a few megabytes.
    let logs = if name == "sliding-log" { cap * 160 } else { 0 };
    let bound = cap * SLOT + logs + (8 << 20);
    assert!(peak <= bound, "{name}: {peak} of {bound} bytes");
}

/// Returns a number of bytes from the process status, on Linux.
fn process_memory(field: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(field))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
