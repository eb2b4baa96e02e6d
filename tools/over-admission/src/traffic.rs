//! When calls come, and with which keys: the same for all limiters.

use std::time::Duration;

use crate::log::now;

/// A generator of pseudo-random numbers (xorshift64*): the same sequence for the same seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32) * end) >> 32
    }
}

/// When callers call as often as they are answered: bursts, and between them pauses in which buckets fill and windows end. Times are in
/// milliseconds since the Unix epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bursts(Vec<(u64, u64)>);

/// How long a burst of a few calls is.
const FEW_CALLS: u64 = 3;

impl Bursts {
    /// Returns bursts of up to 0.7 s, with pauses of up to 1.5 s, from now on. Some bursts are of a few calls only, which open a window
    /// and leave most of its permits to the next burst.
    pub(crate) fn random(seed: u64, duration: Duration) -> Self {
        let mut random = Random::new(seed);
        // The processes have to start.
        let begin = milliseconds() + 1_000;
        let end = begin + duration.as_millis() as u64;
        let (mut bursts, mut start) = (Vec::new(), begin);
        while start < end {
            let stop = start + if random.below(2) == 0 { FEW_CALLS } else { 100 + random.below(600) };
            bursts.push((start, stop));
            start = stop + random.below(1_500);
        }
        Bursts(bursts)
    }

    /// Returns a single burst, from now on.
    pub(crate) fn one(duration: Duration) -> Self {
        let now = milliseconds();
        Bursts(vec![(now, now + duration.as_millis() as u64)])
    }

    /// Returns how long a caller has to wait now, or `None` after the last burst.
    pub(crate) fn wait(&self) -> Option<Duration> {
        let now = milliseconds();
        let (start, _) = self.0.iter().find(|(_, end)| now < *end)?;
        Some(Duration::from_millis(start.saturating_sub(now)))
    }

    /// Returns whether callers pause after each call, so that few of them come in a short burst.
    pub(crate) fn is_paced(&self) -> bool {
        self.0.len() > 1
    }

    pub(crate) fn text(&self) -> String {
        let bursts: Vec<String> = self.0.iter().map(|(start, end)| format!("{start}-{end}")).collect();
        bursts.join(",")
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let burst = |text: &str| {
            let (start, end) = text.split_once('-')?;
            Some((start.parse().ok()?, end.parse().ok()?))
        };
        text.split(',').map(burst).collect::<Option<_>>().map(Bursts)
    }
}

fn milliseconds() -> u64 {
    now() / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_spread_and_repeat() {
        let (mut random, mut again) = (Random::new(7), Random::new(7));
        let mut counts = [0; 10];
        for _ in 0..10_000 {
            let number = random.below(10);
            assert_eq!(number, again.below(10));
            counts[number as usize] += 1;
        }
        assert!(counts.iter().all(|count| (800..1_200).contains(count)), "{counts:?}");
    }

    #[test]
    fn bursts_follow_each_other_and_are_read_as_written() {
        let bursts = Bursts::random(3, Duration::from_secs(20));
        assert!(bursts.0.len() > 10, "{bursts:?}");
        assert!(
            bursts.0.windows(2).all(|pair| pair[0].0 < pair[0].1 && pair[0].1 <= pair[1].0),
            "{bursts:?}"
        );
        assert_eq!(Bursts::parse(&bursts.text()), Some(bursts));
        assert_eq!(Bursts(vec![(0, 1)]).wait(), None);
    }
}
