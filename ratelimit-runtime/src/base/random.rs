//! Randomness that keeps processes, and clients, from acting in step.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number from 0 to 1.
pub(crate) fn random() -> f64 {
    // The standard library's only source of randomness: every `RandomState` has another seed.
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}
