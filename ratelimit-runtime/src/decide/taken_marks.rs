//! The marks that are known to be taken, so that not every call of a key that nears its limit asks Redis for one.

use std::sync::{Mutex, PoisonError};

use crate::base::number_map::NumberMap;
use crate::key::Fingerprint;

/// After so many microseconds another call asks, if no answer came.
const ASKS_AGAIN: u64 = 1_000_000;

/// The most marks that are remembered. To forget one costs a call to Redis.
const MOST: usize = 100_000;

/// The marks that are taken, or asked for, by when that ends by the clock of the store.
#[derive(Debug, Default)]
pub(crate) struct TakenMarks(Mutex<NumberMap<Fingerprint, u64>>);

impl TakenMarks {
    /// Returns whether nobody has the mark as far as is known, so that the caller asks for it. No other call does so meanwhile.
    pub(crate) fn begin(&self, mark: Fingerprint, now: u64) -> bool {
        let mut marks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if marks.get(&mark).is_some_and(|ends| now < *ends) {
            return false;
        }
        if marks.len() >= MOST {
            marks.retain(|_, ends| now < *ends);
            // Or else the next ones would look through all of them again.
            if marks.len() > MOST / 2 {
                marks.clear();
            }
        }
        marks.insert(mark, now + ASKS_AGAIN);
        true
    }

    /// Remembers that somebody has the mark until then.
    pub(crate) fn add(&self, mark: Fingerprint, ends: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(mark, ends);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(i: usize) -> Fingerprint {
        Fingerprint(i as u64, 0)
    }

    #[test]
    fn one_call_asks_until_the_mark_ends() {
        let marks = TakenMarks::default();
        assert!(marks.begin(mark(1), 5));
        assert!(!marks.begin(mark(1), 5 + ASKS_AGAIN - 1));
        assert!(marks.begin(mark(2), 5));
        // No answer came.
        assert!(marks.begin(mark(1), 5 + ASKS_AGAIN));
        marks.add(mark(1), 9 * ASKS_AGAIN);
        assert!(!marks.begin(mark(1), 9 * ASKS_AGAIN - 1));
        assert!(marks.begin(mark(1), 9 * ASKS_AGAIN));
    }

    #[test]
    fn few_marks_are_remembered() {
        let marks = TakenMarks::default();
        let len = || marks.0.lock().unwrap().len();
        for i in 0..MOST {
            assert!(marks.begin(mark(i), 0));
        }
        // All have ended.
        assert!(marks.begin(mark(MOST), ASKS_AGAIN));
        assert_eq!(len(), 1);
        for i in 0..3 * MOST {
            marks.begin(mark(i), ASKS_AGAIN);
            assert!(len() <= MOST);
        }
    }
}
