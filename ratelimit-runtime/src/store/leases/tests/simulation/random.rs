//! Random numbers that a seed repeats.

/// SplitMix64.
pub(super) struct Random(pub(super) u64);

impl Random {
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// Returns whether something happens that does once in so many times; with 0 never.
    pub(super) fn once_in(&mut self, times: u64) -> bool {
        times > 0 && self.below(times) == 0
    }

    /// Returns how long to wait for the next of events that come independently of each other, this long apart on average.
    pub(super) fn gap(&mut self, mean: f64) -> u64 {
        let share = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        (-mean * (1.0 - share).ln()) as u64
    }
}

/// Keys by how often they are used: each as often as its number says that it should be less.
pub(super) struct Zipf(Vec<f64>);

impl Zipf {
    pub(super) fn new(keys: usize) -> Self {
        let mut sum = 0.0;
        Zipf(
            (1..=keys)
                .map(|rank| {
                    sum += 1.0 / rank as f64;
                    sum
                })
                .collect(),
        )
    }

    pub(super) fn draw(&self, random: &mut Random) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        let at = (random.next() >> 11) as f64 / (1_u64 << 53) as f64 * total;
        self.0.partition_point(|sum| *sum <= at).min(self.0.len() - 1)
    }
}
