//! A policy in a few words, by which many threads can compare it without a lock.

use std::hash::{Hash, Hasher};

use super::Policy;
use super::fixed_window::{FixedWindow, Windows};

/// What a policy is hashed by, in place of a hash: the words of equal policies are equal, and those of others are not.
///
/// The first word has all small numbers: flags, and which variants of types they are. Those before a word say which one it is.
struct Words<F> {
    /// The first word, so far.
    first: u64,
    /// How many small numbers there are.
    small: u32,
    /// Gets the others, by their indices.
    each: F,
    len: usize,
    fit: bool,
}

/// How many words there may be.
const MOST: usize = 8;

/// The first word of a window that the first call opens. No small numbers add up to it: that would take eight of 255.
const OPENED_WINDOW: u64 = u64::MAX;

impl Policy {
    /// Returns words that tell it from all other policies. `None` if it has too many, as that of a calendar does.
    pub(crate) fn words(&self) -> Option<[u64; MOST]> {
        let mut words = [0; MOST];
        if let Some(written_out) = self.written_out() {
            words[..written_out.len()].copy_from_slice(&written_out);
            return Some(words);
        }
        self.for_each_hashed_word(|i, word| words[i] = word).then_some(words)
    }

    /// Whether its words are these.
    #[inline(always)]
    pub(crate) fn has_words(&self, word: impl Fn(usize) -> u64) -> bool {
        // By name, so that they are compared without being written to memory.
        if let Some([first, second, third, fourth]) = self.written_out() {
            return first == word(0) && second == word(1) && third == word(2) && fourth == word(3);
        }
        self.has_hashed_words(word)
    }

    /// Returns the words of a policy that many calls compute. Those of others are what it is hashed by.
    #[inline(always)]
    fn written_out(&self) -> Option<[u64; 4]> {
        match *self {
            Policy::FixedWindow(FixedWindow { limit, windows: Windows::Opened(period) }) => {
                Some([OPENED_WINDOW, limit, period.as_secs(), u64::from(period.subsec_nanos())])
            }
            _ => None,
        }
    }

    #[inline(never)]
    fn has_hashed_words(&self, word: impl Fn(usize) -> u64) -> bool {
        let mut are_same = true;
        self.for_each_hashed_word(|i, own| are_same &= own == word(i)) && are_same
    }

    /// Returns whether it has no more than [`MOST`].
    #[inline]
    fn for_each_hashed_word(&self, each: impl FnMut(usize, u64)) -> bool {
        let mut words = Words { first: 0, small: 0, each, len: 1, fit: true };
        self.hash(&mut words);
        let Words { first, mut each, fit, .. } = words;
        each(0, first);
        fit
    }
}

impl<F> Words<F> {
    #[inline]
    fn small(&mut self, number: u64) {
        self.fit &= number < 1 << 8 && self.small < 8;
        self.first |= number << (8 * self.small % 64);
        self.small += 1;
    }
}

impl<F: FnMut(usize, u64)> Hasher for Words<F> {
    fn write(&mut self, _: &[u8]) {
        self.fit = false;
    }

    #[inline]
    fn write_u8(&mut self, number: u8) {
        self.small(u64::from(number));
    }

    #[inline]
    fn write_isize(&mut self, number: isize) {
        self.small(number as u64);
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.write_u64(u64::from(number));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        if self.len < MOST {
            (self.each)(self.len, number);
        } else {
            self.fit = false;
        }
        self.len += 1;
    }

    fn finish(&self) -> u64 {
        0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::base::property_tests::config;
    use crate::base::rate::Rate;
    use crate::policy::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

    /// Policies of few numbers, so that some are equal.
    fn policy() -> impl Strategy<Value = Policy> {
        (0..5, [0..3_u64, 0..3, 0..3], any::<[bool; 5]>()).prop_map(|(kind, numbers, flags)| {
            let [first, second, third] = numbers;
            let time = |number: u64| Duration::new(number / 2, (number % 2) as u32);
            let rate = Rate::new(first, time(second));
            match kind {
                0 => {
                    let mut bucket = TokenBucket::new(rate);
                    bucket = if flags[0] { bucket.burst(third) } else { bucket };
                    bucket = if flags[1] { bucket.burst_for(time(third)) } else { bucket };
                    bucket.warmup = flags[2].then_some(time(first));
                    bucket.borrow = flags[3];
                    if flags[4] { bucket.adjustable() } else { bucket }.into()
                }
                1 if flags[0] => FixedWindow::new(first, time(second)).aligned().into(),
                1 => FixedWindow::new(first, time(second)).into(),
                2 => {
                    let bucket = LeakyBucket::new(third, rate);
                    let bucket = if flags[0] { LeakyBucket::draining(third, time(second)) } else { bucket };
                    LeakyBucket { queue: flags[1], ..bucket }.into()
                }
                3 => {
                    let precision = flags[0].then_some(time(third));
                    SlidingWindow { precision, ..SlidingWindow::new(first, time(second)) }.into()
                }
                _ => ConcurrencyLimit::new(first).into(),
            }
        })
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn words_are_equal_for_equal_policies_alone(policies in prop::collection::vec(policy(), 60)) {
            for one in &policies {
                prop_assert!(one.words().is_some(), "{one:?}");
                for other in &policies {
                    let words = other.words();
                    prop_assert_eq!(one.words() == words, one == other, "{:?} {:?}", one, other);
                    prop_assert_eq!(words.map(|words| one.has_words(|i| words[i])), Some(one == other));
                }
            }
        }
    }
}
