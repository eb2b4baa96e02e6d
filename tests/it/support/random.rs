//! Numbers that look random and come again with their seed.

use std::hash::{BuildHasher, RandomState};

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Of the seed in `RATELIMITS_SEED`, or else of a new one. The test that fails names it.
    pub(crate) fn seeded() -> Self {
        let seed =
            super::numbers::number("RATELIMITS_SEED").unwrap_or_else(|| RandomState::new().hash_one(0));
        println!("RATELIMITS_SEED={seed}");
        Random::new(seed)
    }

    /// The numbers of one run of many, whatever the others draw.
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

    /// From 0 to `end`, without it.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Both ends included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high - low + 1)
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }
}
