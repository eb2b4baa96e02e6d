//! Reproducible random numbers.

use std::env::VarError;
use std::hash::{BuildHasher, RandomState};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Uses the seed in `RATELIMITS_SEED`, or else a new one. Prints it, so that a failed run can be repeated.
    pub(crate) fn seeded() -> Self {
        let seed = match std::env::var("RATELIMITS_SEED") {
            Ok(seed) => seed.parse().unwrap_or_else(|_| panic!("RATELIMITS_SEED={seed} is not a number")),
            Err(VarError::NotPresent) => RandomState::new().hash_one(0),
            Err(error) => panic!("RATELIMITS_SEED: {error}"),
        };
        println!("RATELIMITS_SEED={seed}");
        Random::new(seed)
    }

    /// Returns the generator of one of many runs, independent of the others.
    pub(crate) fn run(&self, run: u64) -> Self {
        Random::new(self.0 ^ run.wrapping_mul(0x2545_f491_4f6c_dd1d))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns a number from `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    /// Returns true with this chance.
    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
