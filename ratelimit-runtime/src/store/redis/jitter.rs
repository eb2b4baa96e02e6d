//! Keeps processes from doing the same at the same time.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// Between three quarters of a time and five.
pub(super) fn jittered(time: Duration) -> Duration {
    // The standard library's one source of randomness: each state is seeded anew.
    let random = RandomState::new().hash_one(0u8) % 1000;
    time.mul_f64(0.75 + random as f64 / 2000.0)
}

/// In any order.
pub(super) fn shuffled<T>(mut items: Vec<T>) -> Vec<T> {
    let random = RandomState::new();
    for last in (1..items.len()).rev() {
        items.swap(last, random.hash_one(last) as usize % (last + 1));
    }
    items
}
