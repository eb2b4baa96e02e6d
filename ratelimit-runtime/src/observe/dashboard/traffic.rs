//! What a policy decided in each second of the last minute.

use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

use crate::decide::observation::{CallOutcome, Observation};

/// How many seconds are shown.
const SHOWN: u32 = 60;

/// How many seconds are kept: those that are shown, and the current one.
const KEPT: usize = 64;

/// Calls of a policy, by what became of them.
#[derive(Debug, Default)]
pub(super) struct Traffic {
    admitted: Calls,
    limited: Calls,
    /// Those that a shadow policy would have refused.
    shadow_limited: Calls,
    /// Those that no policy decided: the store failed, the policy is invalid, or a part of the key is missing.
    failed: Calls,
    /// Those that waited, which are among the admitted or limited ones as well.
    waited: Calls,
}

/// A number of calls, in total and by second.
#[derive(Debug)]
struct Calls {
    total: AtomicU64,
    /// The count of a second is at its number modulo the length. The upper half of the word is that number, the lower half the
    /// count, so that one exchange both counts and starts a new second.
    seconds: [AtomicU64; KEPT],
}

impl Traffic {
    /// Counts a call that ended in this second.
    pub(super) fn count(&self, seen: &Observation<'_>, second: u32) {
        let calls = match seen.outcome {
            CallOutcome::Admitted => &self.admitted,
            CallOutcome::Limited => &self.limited,
            CallOutcome::ShadowLimited => &self.shadow_limited,
            CallOutcome::MissingKey | CallOutcome::StoreError | CallOutcome::Invalid => &self.failed,
            // Neither admitted nor refused by this policy, or no call.
            CallOutcome::NotCharged
            | CallOutcome::Paused
            | CallOutcome::Released
            | CallOutcome::NearLimit => return,
        };
        calls.add(second);
        if !seen.waited.is_zero() {
            self.waited.add(second);
        }
    }

    /// Returns the counts of a policy, given the current second, which is left out because it is not over.
    pub(super) fn to_json(&self, policy: &str, second: u32) -> Value {
        let calls = |calls: &Calls| json!({ "total": calls.total(), "seconds": calls.last(second) });
        json!({
            "policy": policy,
            "admitted": calls(&self.admitted),
            "limited": calls(&self.limited),
            "shadow_limited": calls(&self.shadow_limited),
            "failed": calls(&self.failed),
            "waited": calls(&self.waited),
        })
    }
}

impl Calls {
    fn add(&self, second: u32) {
        self.total.fetch_add(1, Ordering::Relaxed);
        let add = |word| match second_of(word) {
            of if of == second => Some(word + 1),
            of if of < second => Some((u64::from(second) << 32) | 1),
            // Of a later minute. This thread was interrupted for so long that its second is not shown any more.
            _ => None,
        };
        let _ = self.slot(second).fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
    }

    fn total(&self) -> u64 {
        self.total.load(Ordering::Relaxed)
    }

    /// Returns the counts of the seconds before this one, the latest last.
    fn last(&self, second: u32) -> Vec<u32> {
        let count = |at: Option<u32>| match at {
            Some(at) => {
                let word = self.slot(at).load(Ordering::Relaxed);
                if second_of(word) == at { word as u32 } else { 0 }
            }
            None => 0,
        };
        (1..=SHOWN).rev().map(|ago| count(second.checked_sub(ago))).collect()
    }

    fn slot(&self, second: u32) -> &AtomicU64 {
        &self.seconds[second as usize % KEPT]
    }
}

impl Default for Calls {
    fn default() -> Self {
        Calls { total: AtomicU64::new(0), seconds: [const { AtomicU64::new(0) }; KEPT] }
    }
}

fn second_of(word: u64) -> u32 {
    (word >> 32) as u32
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn calls_are_counted_by_second() {
        let calls = Calls::default();
        for second in [0, 0, 1, 59, 59, 59] {
            calls.add(second);
        }
        let at_60 = calls.last(60);
        assert_eq!((at_60.len(), at_60[0], at_60[1], at_60[59]), (60, 2, 1, 3));
        assert_eq!(at_60.iter().sum::<u32>(), 6);
        assert_eq!(calls.last(61)[..2], [1, 0]);
        assert_eq!(calls.last(0), [0; 60]);
        assert_eq!(calls.last(200), [0; 60]);
        assert_eq!(calls.total(), 6);
    }

    #[test]
    fn a_second_replaces_the_one_that_is_no_longer_shown() {
        let calls = Calls::default();
        calls.add(3);
        calls.add(3 + KEPT as u32);
        // A thread that was interrupted for a minute.
        calls.add(3);
        assert_eq!(calls.last(4), [0; 60]);
        assert_eq!(calls.last(4 + KEPT as u32)[59], 1);
        assert_eq!(calls.total(), 3);
    }

    #[test]
    fn threads_lose_no_count() {
        let calls = Calls::default();
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..40_000).for_each(|call| calls.add(call / 1000)));
            }
        });
        // A thread that is far behind counts in seconds that are still kept.
        assert_eq!(calls.last(40)[20..], [4000; 40]);
        assert_eq!(calls.total(), 160_000);
    }
}
