//! Tasks that decide under every policy until they are stopped.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::Store;
use tokio::task::JoinHandle;

use super::{MAX_LATENCY, RECOVERS_WITHIN};
use crate::support::load::{LoadGenerator, LoadReport};
use crate::support::policies::{self, Pair};
use crate::support::random::Random;
use crate::support::stall_monitor::StallMonitor;
use crate::support::store::{charge, decide};
use crate::support::until::until;

/// What each policy admits at once.
const CAPACITY: u64 = 20;

pub(super) struct Load {
    store: Store,
    crowds: Vec<RunningCrowd>,
    stop: Arc<AtomicBool>,
    stalls: StallMonitor,
}

struct RunningCrowd {
    name: &'static str,
    pair: Pair,
    decided: JoinHandle<LoadReport>,
}

/// The load of each policy.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub(super) tasks: u64,
    pub(super) keys: u64,
    /// The time after which an empty key is full again. A loss of data must be shorter to be seen.
    pub(super) full_after: Duration,
}

impl Load {
    pub(super) fn start(store: Store, random: &Random, shape: Shape) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let crowds = policies::each_for(CAPACITY, shape.full_after).into_iter().map(|(name, pair)| {
            let crowd = LoadGenerator {
                store: store.clone(),
                name: name.to_owned(),
                pair,
                tasks: shape.tasks,
                keys: shape.keys,
                answered: Arc::default(),
            };
            let (random, stop) = (random.clone(), Arc::clone(&stop));
            let decided = async move { crowd.decide(&random, move || !stop.load(Ordering::Relaxed)).await };
            RunningCrowd { name, pair, decided: tokio::spawn(decided) }
        });
        let crowds = crowds.collect();
        Load { store, crowds, stop, stalls: StallMonitor::start() }
    }

    /// Waits until the store decides on keys of every cluster node.
    pub(super) async fn recovers(&self) {
        for key in 0..CAPACITY {
            let mut charge = charge(&format!("probe:{{{key}}}"), 1);
            charge.cost = 0;
            until("Redis decides again", RECOVERS_WITHIN, async || decide(&self.store, &charge).await).await;
        }
    }

    /// Stops the tasks. Nothing took too long, and each policy held but for one capacity per key that `is_lost` names and
    /// time in `losses` (Unix time in µs).
    pub(super) async fn finish(self, losses: &[u64], is_lost: impl Fn(u64) -> bool) {
        self.stop.store(true, Ordering::Relaxed);
        for RunningCrowd { name, pair, decided } in self.crowds {
            let decided = decided.await.expect("no decision panics");
            let (count, admitted, failures) = (decided.decisions, decided.admitted(), decided.failures);
            println!("{name}: {count} decisions, {admitted} admitted, {failures} failed");
            self.stalls.assert_within(MAX_LATENCY, decided.longest, name);
            assert!(failures < count && admitted > 5, "{name}: {admitted} of {count} admitted");
            let held = decided.check_bounds_with(pair.model, losses, &is_lost);
            held.unwrap_or_else(|broken| panic!("{name}, {broken}"));
        }
    }
}
