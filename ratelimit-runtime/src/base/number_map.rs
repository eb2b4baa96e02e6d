//! Maps whose keys are numbers that no user chooses, or keyed hashes. Hashing them costs a fraction of what the default hasher does.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by the numbers of runtimes, scripts and Cluster slots, or by fingerprints.
pub(crate) type NumberMap<K, V> = HashMap<K, V, BuildHasherDefault<NumberHasher>>;

/// The hasher of such a map.
#[derive(Debug, Default)]
pub(crate) struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u16(&mut self, number: u16) {
        self.write_u64(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        // An odd constant without a pattern, as in Fibonacci hashing.
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }

    fn write_isize(&mut self, number: isize) {
        self.write_u64(number as u64);
    }

    fn finish(&self) -> u64 {
        // A map looks at the lowest bits first, which the product mixes least.
        self.0 ^ self.0 >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::NumberHasher;

    #[test]
    fn slots_of_all_runtimes_spread() {
        let hasher = BuildHasherDefault::<NumberHasher>::default();
        for bits in [0, 57] {
            let buckets: HashSet<_> = (0..16_384_u16)
                .map(|slot| hasher.hash_one((u64::from(slot % 4), slot)) >> bits & 0x7F)
                .collect();
            assert_eq!(buckets.len(), 128);
        }
    }
}
