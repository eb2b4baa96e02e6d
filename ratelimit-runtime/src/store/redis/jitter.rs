//! Times and orders at random, so that processes do not act in step.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use crate::base::random::random;

/// Returns the duration times a random factor between 0.75 and 1.25. Tests can be repeated.
pub(super) fn jittered(duration: Duration) -> Duration {
    let random = if cfg!(feature = "test-util") { 0.5 } else { random() };
    duration.mul_f64(0.75 + random / 2.0)
}

/// Returns the items in random order.
pub(super) fn shuffled<T>(mut items: Vec<T>) -> Vec<T> {
    let random = RandomState::new();
    for last in (1..items.len()).rev() {
        items.swap(last, random.hash_one(last) as usize % (last + 1));
    }
    items
}
