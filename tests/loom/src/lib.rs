//! The memory store, compiled with the atomics and the mutex of the model checker [loom], which runs every interleaving of a
//! few threads, and returns from each load every value that the memory model allows.
//!
//! The files are the product's. Only the clock and the keys are simpler, and `sync` is loom's. rustfmt skips files whose unit
//! tests it would not find from here.
//!
//! [loom]: https://docs.rs/loom
#![allow(dead_code, unused_imports, unreachable_pub, reason = "parts of the product's files are unused here")]
// Their unit tests are not for loom.
#![cfg(not(test))]

#[path = "../../../ratelimit-runtime/src/algorithm/mod.rs"]
mod algorithm;
#[path = "../../../ratelimit-runtime/src/bounds.rs"]
mod bounds;
mod clock;
mod key;
#[path = "../../../ratelimit-runtime/src/log.rs"]
mod log;
#[path = "../../../ratelimit-runtime/src/policy_id.rs"]
mod policy_id;
#[rustfmt::skip]
#[path = "../../../ratelimit-runtime/src/rate.rs"]
mod rate;
mod sync;
#[rustfmt::skip]
#[path = "../../../ratelimit-runtime/src/units.rs"]
mod units;

#[path = "."]
mod error {
    #[path = "../../../ratelimit-runtime/src/error/invalid_policy.rs"]
    pub(crate) mod invalid_policy;
}

#[path = "."]
mod store {
    #[path = "../../../ratelimit-runtime/src/store/charge.rs"]
    pub(crate) mod charge;
    #[path = "../../../ratelimit-runtime/src/store/memory/mod.rs"]
    pub(crate) mod memory;
}

use std::slice;
use std::sync::Arc;

pub use algorithm::adjustable_gcra::AdjustableGcraSpec;
pub use algorithm::fixed_window::FixedWindowSpec;
pub use algorithm::gcra::{GcraKind, GcraSpec};
pub use algorithm::sliding_window::SlidingWindowSpec;
pub use algorithm::{AlgorithmSpec, ChargeId};
pub use clock::Clock;
pub use key::Key;
pub use store::charge::{Charge, Outcome};
pub use store::memory::MemoryStore;

/// A call that waits.
#[derive(Debug)]
pub struct Waiting {
    charge: Charge,
    waiter: Arc<store::memory::Waiter>,
}

impl Waiting {
    /// Queues a call, if it has to wait.
    #[must_use]
    pub fn new(store: &MemoryStore, charge: Charge) -> Option<Self> {
        let (_, waiter) = store.reserve(slice::from_ref(&charge));
        Some(Waiting { charge, waiter: waiter? })
    }

    /// Gives its permits to those behind it.
    pub fn leave(self, store: &MemoryStore) {
        let charge_id = self.waiter.slot(0).charge_id;
        store.leave(&[(self.charge, charge_id)], &self.waiter);
    }
}
