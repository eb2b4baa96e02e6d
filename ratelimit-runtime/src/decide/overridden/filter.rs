//! Tells at once of most keys that they have no override.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::key::Fingerprint;

/// The number of words, as a power of 2. With as many keys as may have overrides, it takes one in forty others for one of them.
const WORDS: usize = 2048;

/// Two bits of each key: a Bloom filter. Readers find out by a sequence lock whether it was replaced meanwhile.
#[derive(Debug)]
pub(super) struct KeyFilter([AtomicU64; WORDS]);

impl KeyFilter {
    pub(super) fn new() -> Box<Self> {
        Box::new(KeyFilter([const { AtomicU64::new(0) }; WORDS]))
    }

    /// Whether a key may be one of those that it was filled with.
    #[inline]
    pub(super) fn may_have(&self, key: Fingerprint) -> bool {
        bits(key).into_iter().all(|(word, bit)| self.0[word].load(Ordering::Relaxed) & bit != 0)
    }

    /// Fills it with other keys. Only one thread at a time may do so.
    pub(super) fn fill(&self, keys: impl Iterator<Item = Fingerprint>) {
        self.0.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        for (word, bit) in keys.flat_map(bits) {
            self.0[word].store(self.0[word].load(Ordering::Relaxed) | bit, Ordering::Relaxed);
        }
    }
}

/// Returns the words and bits of a key, which is a hash.
#[inline]
fn bits(Fingerprint(first, second): Fingerprint) -> [(usize, u64); 2] {
    [first, second].map(|hash| ((hash >> 6) as usize % WORDS, 1 << (hash % 64)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::overrides::MAX_KEYS;
    use crate::key::KeyHasher;

    fn key(i: usize) -> Fingerprint {
        let mut hasher = KeyHasher::new();
        hasher.text(&i.to_string());
        hasher.finish()
    }

    #[test]
    fn keys_are_found_and_most_others_are_not() {
        let filter = KeyFilter::new();
        for first in [0, 7 * MAX_KEYS] {
            filter.fill((first..first + MAX_KEYS).map(key));
            assert!((first..first + MAX_KEYS).all(|i| filter.may_have(key(i))));
            let others = (first + MAX_KEYS..first + 3 * MAX_KEYS).filter(|i| filter.may_have(key(*i)));
            let share = others.count() as f64 / (2 * MAX_KEYS) as f64;
            assert!(share < 0.03, "{share}");
        }
    }
}
