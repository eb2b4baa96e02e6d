//! A small store, and threads that share it.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratelimit_runtime::algorithm::AlgorithmSpec;
use ratelimit_runtime::algorithm::adjustable_gcra::AdjustableGcraSpec;
use ratelimit_runtime::algorithm::fixed_window::FixedWindowSpec;
use ratelimit_runtime::algorithm::gcra::{GcraKind, GcraSpec};
use ratelimit_runtime::algorithm::holds::HoldsSpec;
use ratelimit_runtime::models;
use ratelimit_runtime::store::{Charge, Clock, Key, MemoryStore, Outcome};

/// How long a permit takes to refill.
pub(crate) const INTERVAL: u64 = 10;

/// How long a window is.
pub(crate) const PERIOD: u64 = 100;

/// A store that threads share.
#[derive(Clone)]
pub(crate) struct Shared {
    clock: Arc<AtomicU64>,
    pub(crate) store: Arc<MemoryStore>,
}

/// Runs every interleaving in which threads are preempted at most so often, or once more with `RATELIMITS_TEST_BUDGET=long`.
pub(crate) fn explore(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    let is_long = std::env::var_os("RATELIMITS_TEST_BUDGET").is_some_and(|budget| budget == "long");
    builder.preemption_bound = Some(preemptions + usize::from(is_long));
    builder.max_branches = 100_000;
    builder.check(model);
}

impl Shared {
    pub(crate) fn new(max_keys: usize) -> Self {
        let clock = Arc::new(AtomicU64::new(1000));
        Shared { store: Arc::new(MemoryStore::new(max_keys, Clock::manual(Arc::clone(&clock)))), clock }
    }

    /// Sets the time. Loom does not switch threads at it, so the clock is as monotonic as that of a process.
    pub(crate) fn set_time(&self, micros: u64) {
        self.clock.store(micros, Ordering::SeqCst);
    }

    /// Decides charges of one permit each.
    pub(crate) fn decide(&self, charges: &[(u64, AlgorithmSpec)]) -> Outcome {
        let charges: Vec<Charge> = charges.iter().map(|(key, spec)| charge(*key, *spec, 1)).collect();
        self.store.decide(&charges)
    }

    pub(crate) fn admits(&self, charges: &[(u64, AlgorithmSpec)]) -> bool {
        self.decide(charges).admitted
    }

    /// Returns the permits left.
    pub(crate) fn remaining(&self, key: u64, spec: AlgorithmSpec) -> u64 {
        self.store.decide(&[charge(key, spec, 0)]).verdicts[0].remaining
    }

    /// Runs something in another thread.
    pub(crate) fn spawn<T: 'static>(
        &self,
        run: impl FnOnce(&Shared) -> T + 'static,
    ) -> loom::thread::JoinHandle<T> {
        let shared = self.clone();
        loom::thread::spawn(move || run(&shared))
    }
}

/// Keys below 10 stay in the first line, those from 20 to 29 move when it is split. Those from 30 to 39 stay, and those from 40 to
/// 49 move, but their fingerprints all have the same first half.
pub(crate) fn key(key: u64) -> Key {
    let (hash, moves) = match key {
        0..10 => (key, false),
        20..30 => (key, true),
        30..40 => (30, false),
        40..50 => (40, true),
        _ => unreachable!("keys are below 10 or from 20 to 49"),
    };
    // The lower bits select the line.
    models::key([4 * hash + if moves { 2 } else { 0 }, key])
}

pub(crate) fn charge(of: u64, spec: AlgorithmSpec, cost: u64) -> Charge {
    Charge { key: key(of), spec, cost, wait: 0, shadow: false }
}

pub(crate) fn bucket(permits: u64) -> AlgorithmSpec {
    let capacity = permits * INTERVAL;
    AlgorithmSpec::Gcra(GcraSpec { kind: GcraKind::TokenBucket, interval: INTERVAL, capacity })
}

/// The same bucket, but with numbers that can change.
pub(crate) fn adjustable(permits: u64) -> AlgorithmSpec {
    let capacity = permits * INTERVAL;
    let spec = GcraSpec { kind: GcraKind::TokenBucket, interval: INTERVAL, capacity };
    AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
}

pub(crate) fn window(limit: u64) -> AlgorithmSpec {
    AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period: PERIOD, aligned: false })
}

/// At most so many permits at once.
pub(crate) fn holds(max: u64) -> AlgorithmSpec {
    AlgorithmSpec::Holds(HoldsSpec { max })
}
