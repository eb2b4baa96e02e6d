//! Pauses of a key: times in which no call starts. A bucket has a clock of its own, which stands still meanwhile. A window is read as
//! of the end of the pause.

use super::{Algorithm, Policy, Receipt, Verdict};

/// The pauses of a key so far.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Pauses {
    /// When the last one ends.
    until: i128,
    /// When the key was written last.
    written: i128,
    /// For how long the bucket's clock has stood still.
    pub(super) stood_still: i128,
    /// How often the key has been paused.
    pub(super) count: usize,
    /// The penalties that had not been forgiven when the last pause was set.
    step: i128,
    /// Whether the key has admitted no call since.
    is_spent: bool,
    /// After how long one of them is forgiven each time, from the end of the pause; 0 if there are none.
    forgiven_in: i128,
}

/// A receipt, and how often its key had been paused and reset when it was given. A later pause voids the receipt of a bucket, a later
/// reset that of a hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct DatedReceipt {
    pub(super) receipt: Receipt,
    pub(super) pauses: usize,
    pub(super) resets: usize,
}

impl Pauses {
    /// Returns when the pause ends. A clock that steps back leaves as much of it as there was when the key was written.
    pub(crate) fn end(&self, now: i128) -> i128 {
        self.until - (self.written - now).max(0)
    }

    pub(crate) fn left(&self, now: i128) -> i128 {
        (self.end(now) - now).max(0)
    }

    /// Returns the time by the clock of the key: its own if it is a bucket.
    pub(super) fn time(&self, policy: Policy, now: i128) -> i128 {
        let time = now.max(self.end(now));
        if policy.is_window() { time } else { time - self.stood_still }
    }

    /// Returns the real time of one by the clock of the key.
    pub(super) fn real(&self, policy: Policy, time: i128) -> i128 {
        if policy.is_window() { time } else { time + self.stood_still }
    }

    pub(super) fn are_from_the_future(&self, now: i128) -> bool {
        self.count > 0 && self.written > now
    }

    /// Records that the key is written.
    pub(super) fn write(&mut self, now: i128) {
        (self.until, self.written) = (self.end(now), now);
    }

    /// Returns whether the pause lasts longer by that.
    pub(super) fn extend(&mut self, now: i128, micros: i128) -> bool {
        let longer = now + micros - now.max(self.end(now));
        if longer <= 0 {
            return false;
        }
        self.step = self.step(now);
        self.stood_still += longer;
        self.count += 1;
        (self.until, self.written) = (now + micros, now);
        true
    }

    /// Returns how many penalties are not forgiven.
    pub(super) fn step(&self, now: i128) -> i128 {
        let after = (now - self.end(now)).max(0);
        let forgiven = if self.forgiven_in > 0 { after / self.forgiven_in } else { 0 };
        (self.step - forgiven).max(0)
    }

    /// Returns the number of the penalty that a refusal is, out of so many, unless it is none.
    pub(super) fn next_step(&self, now: i128, steps: usize) -> Option<usize> {
        let counts = self.left(now) == 0 && !self.is_spent;
        counts.then(|| steps.min(self.step(now) as usize + 1))
    }

    /// Records that the last pause was the penalty of this number.
    pub(super) fn penalize(&mut self, step: usize, longest: i128) {
        (self.step, self.is_spent, self.forgiven_in) = (step as i128, true, longest);
    }

    /// Records that the key has admitted a call.
    pub(super) fn admit(&mut self) {
        self.is_spent = false;
    }

    /// Returns when the pause is over and all penalties are forgiven, if the key had any.
    pub(super) fn last_end(&self) -> Option<i128> {
        (self.count > 0).then_some(self.until + self.step * self.forgiven_in)
    }
}

/// Decides a call of a key that is paused for so long, given what the key does `at_end` of that, for a cost and a wait.
pub(super) fn verdict(
    algorithm: &dyn Algorithm,
    left: i128,
    cost: i128,
    max_wait: i128,
    at_end: impl Fn(i128, i128) -> Verdict,
) -> Verdict {
    let max_wait = algorithm.longest_wait(cost, max_wait);
    let nothing = Verdict { remaining: 0, ..at_end(0, 0) };
    let nothing = Verdict { reset_after: left + nothing.reset_after, ..nothing };
    if cost == 0 {
        return nothing;
    }
    let then = at_end(cost, max_wait.unwrap_or(0));
    let Some(max_wait) = max_wait.filter(|_| then.admitted) else {
        // It waits for the end, and then for as long as it would have to.
        let retry_after = match then.admitted {
            true => Some(left),
            false => then.retry_after.map(|after| left + after),
        };
        return Verdict { admitted: false, retry_after, ..nothing };
    };
    let wait = left + then.wait;
    if wait <= max_wait {
        return Verdict { wait, remaining: 0, reset_after: left + then.reset_after, ..then };
    }
    let retry_after = match algorithm.is_queue() {
        // Until it is near enough.
        true => wait - max_wait,
        false => left + at_end(cost, 0).retry_after.unwrap_or(0),
    };
    Verdict { admitted: false, retry_after: Some(retry_after), ..nothing }
}
