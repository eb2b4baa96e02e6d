//! Randomness that keeps processes from acting in step.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// Returns the duration times a random factor between 0.75 and 1.25.
pub(super) fn jittered(duration: Duration) -> Duration {
    // The standard library's only source of randomness: every `RandomState` has another seed.
    let random = RandomState::new().hash_one(0u8) % 1000;
    duration.mul_f64(0.75 + random as f64 / 2000.0)
}

/// Returns the items in random order.
pub(super) fn shuffled<T>(mut items: Vec<T>) -> Vec<T> {
    let random = RandomState::new();
    for last in (1..items.len()).rev() {
        items.swap(last, random.hash_one(last) as usize % (last + 1));
    }
    items
}
