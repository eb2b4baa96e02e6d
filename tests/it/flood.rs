//! A flood of keys, each seen once, through the store of this process: it holds no more than its cap, limits whoever it
//! limited, forgets what ends next, and takes no more memory than the cap explains. `RATELIMITS_FLOOD_KEYS` makes it longer, by so
//! many keys through the cap of `RATELIMITS_FLOOD_CAP`, of each algorithm in a process of its own.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{AlgorithmSpec, Charge, Clock, Key, MemoryStore};
use ratelimits::{FixedWindow, Policy, SlidingWindow, TokenBucket};

use crate::support::numbers::number;
use crate::support::scheduled::START;

const KEYS: u64 = 300_000;
const CAP: u64 = 30_000;
const HOUR: Duration = Duration::from_secs(3600);

const CHILD: &str = "RATELIMITS_FLOOD_OF";

/// The bytes that a key takes in the store: a hash, its end and its state.
const SLOT: u64 = 80;

/// Each for one permit in its time.
fn policies(time: Duration) -> [(&'static str, Policy); 3] {
    [
        ("token-bucket", TokenBucket::new(ratelimits::Rate::new(1, time)).burst(1).into()),
        ("fixed-window", FixedWindow::new(1, time).into()),
        ("log", SlidingWindow::new(1, time).into()),
    ]
}

fn specs(time: Duration) -> [(&'static str, AlgorithmSpec); 3] {
    policies(time).map(|(name, policy)| (name, policy.spec().expect("it is valid")))
}

/// A store under a time of the test's.
struct Flooded {
    store: MemoryStore,
    time: Arc<AtomicU64>,
    cap: u64,
}

impl Flooded {
    fn new(cap: u64) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        Flooded { store: MemoryStore::new(cap as usize, Clock::manual(Arc::clone(&time))), time, cap }
    }

    /// Whether the call is admitted, and the store still within its cap.
    fn admits(&self, key: &str, spec: AlgorithmSpec) -> bool {
        let charge = Charge { key: Key::raw(key.to_owned()), spec, cost: 1, wait: 0, shadow: false };
        let admitted = self.store.decide(&[charge]).admitted;
        assert!(self.store.len() as u64 <= self.cap, "{} keys", self.store.len());
        admitted
    }

    fn pass(&self, time: Duration) {
        self.time.fetch_add(time.as_micros() as u64, Ordering::SeqCst);
    }
}

#[test]
fn a_flood_up_to_the_cap_frees_nobody() {
    for (name, spec) in specs(HOUR) {
        let flooded = Flooded::new(CAP);
        let limited: Vec<String> = (0..1000).map(|key| format!("limited {key}")).collect();
        assert!(limited.iter().all(|key| flooded.admits(key, spec)), "{name}");
        for key in 0..CAP - 1000 {
            assert!(flooded.admits(&format!("{key}"), spec));
            // What has come later ends later.
            flooded.pass(Duration::from_micros(1));
        }
        assert_eq!((flooded.store.len() as u64, flooded.store.evicted()), (CAP, 0), "{name}");
        assert!(!limited.iter().any(|key| flooded.admits(key, spec)), "{name}: one was freed");
    }
}

/// Those that last longer than a key of the flood are not evicted for it, however many come.
#[test]
fn who_outlasts_a_flood_beyond_the_cap_stays_limited() {
    for ((name, lasting), (_, spec)) in specs(2 * HOUR).into_iter().zip(specs(HOUR)) {
        let flooded = Flooded::new(CAP);
        let limited: Vec<String> = (0..1000).map(|key| format!("limited {key}")).collect();
        assert!(limited.iter().all(|key| flooded.admits(key, lasting)), "{name}");
        for key in 0..KEYS {
            assert!(flooded.admits(&format!("{key}"), spec));
            flooded.pass(Duration::from_micros(1));
            if key % 10_000 == 0 {
                assert!(!limited.iter().any(|key| flooded.admits(key, lasting)), "{name}: one was freed");
            }
        }
        assert!(!limited.iter().any(|key| flooded.admits(key, lasting)), "{name}: one was freed");
        // All that is evicted are keys of the flood, and of these the first.
        let evicted = flooded.store.evicted();
        assert_eq!(evicted + flooded.store.len() as u64, KEYS + 1000, "{name}");
        assert!(!flooded.admits(&format!("{evicted}"), spec), "{name}: one was evicted out of its turn");
        assert!(flooded.admits(&format!("{}", evicted - 1), spec), "{name}");
    }
}

/// Those that end before the keys of the flood make room for these.
#[test]
fn who_ends_first_goes_first() {
    for ((name, ending), (_, spec)) in specs(HOUR / 2).into_iter().zip(specs(HOUR)) {
        let flooded = Flooded::new(CAP);
        for key in 0..CAP {
            let spec = if key % 10 == 0 { ending } else { spec };
            assert!(flooded.admits(&format!("{key}"), spec));
        }
        assert!(flooded.admits("one more", spec));
        let evicted = flooded.store.evicted();
        assert!((1..=CAP / 10).contains(&evicted), "{name}: {evicted}");
        assert!((0..CAP).filter(|key| key % 10 != 0).all(|key| !flooded.admits(&format!("{key}"), spec)));
    }
}

#[test]
fn memory_is_bounded_by_the_cap() {
    let (keys, cap) =
        (number("RATELIMITS_FLOOD_KEYS").unwrap_or(KEYS), number("RATELIMITS_FLOOD_CAP").unwrap_or(CAP));
    if let Ok(name) = std::env::var(CHILD) {
        let (_, policy) = policies(HOUR).into_iter().find(|(policy, _)| *policy == name).expect("a policy");
        return flood(&name, policy, keys, cap);
    }
    for (name, _) in policies(HOUR) {
        let mut command = Command::new(std::env::current_exe().expect("the test has a path"));
        command.args(["flood::memory_is_bounded_by_the_cap", "--exact", "--nocapture"]).env(CHILD, name);
        let output = command.output().expect("it can run again");
        let told = String::from_utf8_lossy(&output.stdout);
        told.lines().filter(|line| line.contains(name)).for_each(|line| println!("{line}"));
        let told_wrong = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && told.contains("1 passed"), "{told}\n{told_wrong}");
    }
}

/// So many keys through a store of this cap, and what that takes.
fn flood(name: &str, policy: Policy, keys: u64, cap: u64) {
    let spec = policy.spec().expect("it is valid");
    let store = MemoryStore::new(cap as usize, Clock::process());
    // Touched, so that it is resident before.
    let mut nanos = vec![1_u32; keys as usize];
    let before = resident("VmRSS:");
    let begin = Instant::now();
    for key in 0..keys {
        let charge = Charge { key: Key::raw(format!("user-{key}")), spec, cost: 1, wait: 0, shadow: false };
        let start = Instant::now();
        let admitted = store.decide(&[charge]).admitted;
        nanos[key as usize] = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
        assert!(admitted && store.len() as u64 <= cap);
    }
    let took = begin.elapsed();
    let (after, most) = (resident("VmRSS:"), resident("VmHWM:"));
    assert!(store.len() as u64 <= cap && store.evicted() + store.len() as u64 == keys);
    nanos.sort_unstable();
    let [p50, p99, p999] = [500, 990, 999].map(|part| nanos[(keys * part / 1000) as usize]);
    let max = nanos[keys as usize - 1];
    // Each sweep of a full store makes room for a sixteenth of the cap, and they are what takes longest.
    let sweeps = store.evicted().div_ceil(cap.div_ceil(16)).max(1);
    let swept: u64 = nanos.iter().rev().take(sweeps as usize).map(|nanos| u64::from(*nanos)).sum();
    let per_key = took.as_nanos() / u128::from(keys);
    println!(
        "{name}: {keys} keys through {cap} within {took:.1?}: {per_key} ns each, p50 {p50}, p99 {p99}, p99.9 {p999}, max {max} ns"
    );
    println!("{name}: {sweeps} sweeps of {} µs each, {} ns of each key", swept / sweeps / 1000, swept / keys);
    let (Some(before), Some(after), Some(most)) = (before, after, most) else {
        println!("{name}: SKIPPED the bound on memory, which is read from Linux alone");
        return;
    };
    let [grown, most] = [after, most].map(|bytes| bytes.saturating_sub(before));
    println!(
        "{name}: {} KiB more, {} KiB at the most: {} and {} bytes a key held",
        grown / 1024,
        most / 1024,
        grown / cap,
        most / cap
    );
    // A table is at most 7/8 full and a power of two, and stands beside the one it grows from; a sweep sorts the ends; a log is on
    // the heap; and the rest of a process is some megabytes.
    let table = (cap * 8 / 7).next_power_of_two() * (SLOT + 1);
    let logs = if name == "log" { cap * 160 } else { 0 };
    let bound = table + table / 2 + 8 * cap + logs + (8 << 20);
    assert!(most <= bound, "{name}: {most} of {bound} bytes");
}

/// The bytes of this process that are in memory, or were at the most.
fn resident(what: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with(what))?;
    Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
}
