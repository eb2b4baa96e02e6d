//! What a bucket has given, each call at its slot, and what it has promised of every interval: with this the stores are
//! held to the promise itself, whatever the model says.

use crate::model::{Policy, Refund, Verdict};

/// The calls that one bucket admitted.
#[derive(Debug)]
pub(crate) struct Given {
    policy: Policy,
    calls: Vec<Call>,
    /// Of a bucket that refills at intervals: when it was refilled last, or found full, as its charges were told.
    anchors: Vec<i128>,
    /// Whether anything was given back.
    refunds: bool,
    /// Whether all that was done to it is known here. A clock that steps back, a refund without a receipt, or one of what was
    /// reset: who does that answers for it.
    trusted: bool,
}

#[derive(Clone, Copy, Debug)]
struct Call {
    id: usize,
    came: i128,
    slot: i128,
    /// What it took and was not given back: microseconds of refill, or permits of a bucket that refills at intervals.
    takes: i128,
}

impl Given {
    pub(crate) fn new(policy: Policy) -> Self {
        Given {
            policy,
            calls: Vec::new(),
            anchors: Vec::new(),
            refunds: false,
            trusted: !policy.is_a_window(),
        }
    }

    pub(crate) fn forget(&mut self) {
        self.calls.clear();
        self.anchors.clear();
        self.refunds = false;
    }

    /// A charge was told that the bucket was refilled then.
    pub(crate) fn refilled(&mut self, anchor: i128) {
        if self.anchors.last() != Some(&anchor) {
            self.anchors.push(anchor);
        }
    }

    pub(crate) fn distrust(&mut self) {
        self.trusted = false;
    }

    pub(crate) fn charged(&mut self, id: usize, cost: i128, now: i128, wait: i128) -> Result<(), String> {
        let slot = now + wait;
        let waiting = self.calls.iter().filter(|call| call.slot > now).map(|call| call.slot).max();
        if self.trusted && !self.refunds && waiting.is_some_and(|waiting| slot < waiting) {
            return Err(format!("the call of slot {slot} goes before one that came earlier, of {waiting:?}"));
        }
        self.add(id, cost, now, wait);
        self.check()
    }

    /// The same, where the order is not known.
    pub(crate) fn add(&mut self, id: usize, cost: i128, now: i128, wait: i128) {
        self.calls.push(Call { id, came: now, slot: now + wait, takes: self.policy.takes(cost) });
    }

    /// So much of a call was given back: of the rest the time has passed, or others stand on it.
    pub(crate) fn refunded(&mut self, id: usize, refund: Refund) -> Result<(), String> {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else {
            self.distrust();
            return Ok(());
        };
        self.refunds = true;
        call.takes -= match refund {
            Refund::Of(amount) => amount,
            Refund::All => call.takes,
        };
        self.calls.retain(|call| call.takes > 0);
        self.check()
    }

    /// Holds every interval to its promise.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if !self.trusted {
            return Ok(());
        }
        // Those of one slot in the order in which they came.
        self.calls.sort_by_key(|call| call.slot);
        for (i, first) in self.calls.iter().enumerate() {
            let (mut sum, mut largest) = (0, 0);
            for last in &self.calls[i..] {
                let span = last.slot - first.slot;
                let before = sum;
                sum += last.takes;
                largest = largest.max(last.takes);
                let within = match self.policy {
                    Policy::Bucket { full, .. } => sum <= full + span,
                    Policy::Interval { burst, refill, every } => {
                        let refills = match self.anchors[..] {
                            [] => span / every + 1,
                            // Those who wait for a refill take of it what the bucket could not hold.
                            _ => self.refills(every, first.slot - 1, last.slot),
                        };
                        sum <= burst + refill * refills.min(span / every + 1)
                    }
                    // One call's cost more.
                    Policy::Borrowing { full, .. } => sum - largest <= full + span,
                    // The places of a call begin when those before it have ended.
                    Policy::Queue { .. } => before <= span,
                    // The first took a little less if stored permits ran out: of each of its parts a fraction of 1 µs is cut.
                    Policy::WarmingUp { .. } => before <= span + 2,
                    Policy::Fixed { .. } | Policy::Sliding { .. } => true,
                };
                if !within {
                    return Err(format!("{sum} within {span} µs from {}: {:?}", first.slot, self.calls));
                }
            }
        }
        Ok(())
    }

    /// The refills after `from` up to `to`: one each period from an anchor to the next.
    fn refills(&self, every: i128, from: i128, to: i128) -> i128 {
        let ends = self.anchors.iter().skip(1).copied().chain([i128::MAX]);
        let refills = self.anchors.iter().zip(ends).map(|(anchor, end)| {
            let until = |time: i128| (time.min(end) - anchor).max(0) / every;
            until(to) - until(from)
        });
        refills.sum()
    }

    /// Calls the same again, from nothing and without what was given back, and compares what is left.
    pub(crate) fn check_state(&self, now: i128, look: &Verdict) -> Result<(), String> {
        let (told, expected) = match self.policy {
            _ if !self.trusted => return Ok(()),
            Policy::Bucket { .. } | Policy::Borrowing { .. } => {
                let full_at = self.calls.iter().fold(0, |full_at, call| full_at.max(call.slot) + call.takes);
                (look.reset_after, 0.max(full_at - now))
            }
            Policy::Interval { burst, refill, every } => {
                let (mut missing, mut then) = (0, 0);
                let mut calls = self.calls.clone();
                calls.sort_by_key(|call| call.id);
                for (at, takes) in calls.iter().map(|call| (call.came, call.takes)).chain([(now, 0)]) {
                    missing = 0.max(missing - refill * self.refills(every, then, at)) + takes;
                    then = at;
                }
                (look.remaining, 0.max(burst - missing))
            }
            _ => return Ok(()),
        };
        let fault = || format!("{expected} expected of {:?}, and told is {look:?}", self.calls);
        (told == expected).then_some(()).ok_or_else(fault)
    }
}
