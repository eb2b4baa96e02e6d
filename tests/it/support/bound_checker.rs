//! An independent check of a bucket's promise: every interval between two admitted calls, each counted at its slot, or at some
//! time between two. It uses neither the model nor any state of the library.

use crate::model::{AdjustableKind, Pace, Policy, Refund, Verdict};

/// The calls that one bucket admitted.
#[derive(Debug)]
pub(crate) struct BoundChecker {
    policy: Policy,
    /// The largest numbers in use, if they change. Prices of a bucket that refills continuously are then in parts of permits.
    largest: Option<Largest>,
    /// How long before a call its permits were charged at most, in microseconds.
    lease: i128,
    calls: Vec<AdmittedCall>,
    /// When an interval bucket was refilled or found full, as its charges report.
    anchors: Vec<i128>,
    refunded: bool,
    /// Whether calls have used more than they were charged, so that later ones are admitted later.
    owes: bool,
    /// Whether charges were made for the slots of other buckets: ahead of calls that start earlier.
    moved: bool,
    /// Whether the key has been paused, so that its state is not what its calls have left.
    paused: bool,
    /// Whether the promise holds. It does not after a clock that stepped back, a refund without a receipt, or a refund of a
    /// charge that a reset removed.
    enabled: bool,
}

/// What the calls of an interval took: all, all but the last, and the one that took most.
#[derive(Clone, Copy)]
struct Sums {
    sum: i128,
    before: i128,
    largest: i128,
}

#[derive(Clone, Copy, Debug)]
struct AdmittedCall {
    id: usize,
    called_at: i128,
    /// Not after its slot.
    earliest: i128,
    slot: i128,
    /// What it took and did not get back: microseconds of refill, or permits of an interval bucket.
    price: i128,
    /// The parts of permits that refilled in a microsecond when it was charged, if the rate changes.
    parts: i128,
}

/// The largest numbers of several buckets.
#[derive(Clone, Copy, Debug)]
struct Largest {
    kind: AdjustableKind,
    burst: i128,
    pace: Pace,
    /// The parts of a permit: as many as make any rate a whole number of them each microsecond.
    parts: i128,
}

impl BoundChecker {
    pub(crate) fn new(policy: Policy) -> Self {
        BoundChecker::of_changing(&[policy])
    }

    /// The checker of a key whose calls are decided by any of these policies.
    pub(crate) fn of_changing(policies: &[Policy]) -> Self {
        let policy = policies[1..].iter().fold(policies[0], |largest, policy| largest.largest(*policy));
        let largest = match policy {
            Policy::Adjustable(bucket) => {
                let micros = policies.iter().filter_map(|policy| policy.pace()).map(|pace| pace.micros);
                Some(Largest {
                    kind: bucket.kind,
                    burst: policy.limit(),
                    pace: bucket.pace,
                    parts: micros.product(),
                })
            }
            _ => None,
        };
        BoundChecker {
            policy,
            largest,
            lease: 0,
            calls: Vec::new(),
            anchors: Vec::new(),
            refunded: false,
            owes: false,
            moved: false,
            paused: false,
            enabled: !policy.is_window(),
        }
    }

    /// The checker of a key whose permits are leased for this time.
    pub(crate) fn with_lease(self, time: i128) -> Self {
        BoundChecker { lease: time, ..self }
    }

    pub(crate) fn reset(&mut self) {
        self.calls.clear();
        self.anchors.clear();
        (self.refunded, self.owes, self.moved, self.paused) = (false, false, false, false);
    }

    pub(crate) fn disable(&mut self) {
        self.enabled = false;
    }

    /// Records the last refill, as a charge reports it, unless the refill can change.
    pub(crate) fn add_anchor(&mut self, anchor: i128) {
        if !self.is_changing_interval() && self.anchors.last() != Some(&anchor) {
            self.anchors.push(anchor);
        }
    }

    /// Adds the next admitted call, and checks the order of slots and every interval.
    pub(crate) fn add_next(
        &mut self,
        id: usize,
        policy: Policy,
        cost: i128,
        now: i128,
        wait: i128,
    ) -> Result<(), String> {
        let slot = now + wait;
        let last = self.calls.iter().map(|call| call.slot).filter(|slot| *slot > now).max();
        // A call with a larger burst may go before one that waits.
        let in_order = self.largest.is_none() && !self.is_changing_interval();
        if self.enabled && !self.refunded && !self.moved && in_order && last.is_some_and(|last| slot < last) {
            return Err(format!("the call with slot {slot} goes before an earlier one with slot {last:?}"));
        }
        self.add_by(id, policy, cost, now, wait);
        self.check()
    }

    /// Adds a call that was charged for the slot of another bucket, and checks every interval.
    pub(crate) fn add_moved(
        &mut self,
        id: usize,
        policy: Policy,
        cost: i128,
        now: i128,
        wait: i128,
    ) -> Result<(), String> {
        self.moved = true;
        self.add_next(id, policy, cost, now, wait)
    }

    /// Adds an admitted call, in any order.
    pub(crate) fn add(&mut self, id: usize, cost: i128, now: i128, wait: i128) {
        self.add_by(id, self.policy, cost, now, wait);
    }

    fn add_by(&mut self, id: usize, policy: Policy, cost: i128, now: i128, wait: i128) {
        let (price, parts) = match (self.largest, policy.pace()) {
            (Some(Largest { parts, .. }), Some(pace)) => (cost * parts, pace.permits * parts / pace.micros),
            _ => (policy.price(cost), 0),
        };
        let slot = now + wait;
        self.calls.push(AdmittedCall { id, called_at: now, earliest: slot, slot, price, parts });
    }

    /// Adds a call that was admitted at some time between two, in any order.
    pub(crate) fn add_between(&mut self, id: usize, cost: i128, start: i128, end: i128) {
        let price = self.policy.price(cost);
        self.calls.push(AdmittedCall { id, called_at: start, earliest: start, slot: end, price, parts: 0 });
    }

    /// Records that the bucket stands still from this time on for so long: calls that wait for it start later, and refills come later.
    pub(crate) fn pause(&mut self, from: i128, longer: i128) {
        self.paused = true;
        if let (Policy::Interval { every, .. }, Some(last)) = (self.policy, self.anchors.last()) {
            self.add_anchor(from - (from - last).rem_euclid(every) + longer);
        }
        for call in self.calls.iter_mut().filter(|call| call.slot > from) {
            call.slot += longer;
            call.earliest += longer;
        }
    }

    /// Records a debt.
    pub(crate) fn add_debt(&mut self) {
        self.owes = true;
    }

    /// Records a refund. The rest of the call has been paid by time, or later calls depend on it.
    pub(crate) fn refund(&mut self, id: usize, refund: Refund) -> Result<(), String> {
        let Some(call) = self.calls.iter_mut().find(|call| call.id == id) else {
            self.disable();
            return Ok(());
        };
        self.refunded = true;
        call.price -= match refund {
            Refund::Of(amount) if self.largest.is_some() => amount * call.parts,
            Refund::Of(amount) => amount,
            Refund::All => call.price,
        };
        self.calls.retain(|call| call.price > 0);
        self.check()
    }

    /// Checks every interval.
    pub(crate) fn check(&mut self) -> Result<(), String> {
        if !self.enabled {
            return Ok(());
        }
        // The sort is stable: calls with the same slot stay in the order in which they came.
        self.calls.sort_by_key(|call| call.slot);
        for first in &self.calls {
            let (mut sum, mut largest) = (0, 0);
            let skipped = self.calls.partition_point(|call| call.slot < first.earliest);
            for last in self.calls[skipped..].iter().filter(|call| call.earliest >= first.earliest) {
                let span = self.span(first, last);
                let before = sum;
                sum += last.price;
                largest = largest.max(last.price);
                let within = match (self.policy, self.largest) {
                    (Policy::Adjustable(_), Some(Largest { kind, burst, pace, parts })) => {
                        let burst = burst * parts;
                        let beyond = match kind {
                            AdjustableKind::Meter => sum - burst,
                            AdjustableKind::Borrowing => sum - largest - burst,
                            AdjustableKind::Queue => before,
                        };
                        beyond * pace.micros <= span * pace.permits * parts
                    }
                    (policy, _) => self.holds(policy, first, last, Sums { sum, before, largest }),
                };
                if !within {
                    return Err(format!("{sum} within {span} µs from {}: {:?}", first.earliest, self.calls));
                }
            }
        }
        Ok(())
    }

    /// Returns the length of the interval in which the calls from the first to the last were charged.
    fn span(&self, first: &AdmittedCall, last: &AdmittedCall) -> i128 {
        last.slot - first.earliest + self.lease
    }

    /// Whether the interval from the first to the last call keeps the promise.
    fn holds(&self, policy: Policy, first: &AdmittedCall, last: &AdmittedCall, sums: Sums) -> bool {
        let (span, Sums { sum, before, largest }) = (self.span(first, last), sums);
        match policy {
            Policy::Bucket { full, .. } => sum <= full + span,
            Policy::Interval { burst, refill, every, .. } => {
                let refills = match self.anchors[..] {
                    [] => span / every + 1,
                    // Waiting calls get the part of a refill that the bucket could not hold.
                    _ => self.refills(every, first.slot - 1, last.slot),
                };
                sum <= burst + refill * refills.min(span / every + 1)
            }
            // The promise allows one call's cost more.
            Policy::Borrowing { full, .. } => sum - largest <= full + span,
            // The slots of a call begin when those before it have ended.
            Policy::Queue { .. } => before <= span,
            // Where stored permits ran out, each part of the first call's time was cut to whole microseconds.
            Policy::WarmingUp { .. } => before <= span + 2,
            Policy::Fixed { .. }
            | Policy::Calendar { .. }
            | Policy::Sliding { .. }
            | Policy::Holds { .. } => true,
            Policy::Adjustable(_) => unreachable!("checked by the largest numbers"),
        }
    }

    fn is_changing_interval(&self) -> bool {
        matches!(self.policy, Policy::Interval { adjustable: true, .. })
    }

    /// Returns the number of refills after `from` up to `to`: one per period from each anchor to the next.
    fn refills(&self, every: i128, from: i128, to: i128) -> i128 {
        let ends = self.anchors.iter().skip(1).copied().chain([i128::MAX]);
        let refills = self.anchors.iter().zip(ends).map(|(anchor, end)| {
            let until = |time: i128| (time.min(end) - anchor).max(0) / every;
            until(to) - until(from)
        });
        refills.sum()
    }

    /// Replays the calls on an empty bucket, without what was refunded, and compares the state with a peek.
    pub(crate) fn check_state(&self, now: i128, peek: &Verdict) -> Result<(), String> {
        let (actual, expected) = match self.policy {
            _ if !self.enabled || self.owes || self.paused || self.is_changing_interval() => return Ok(()),
            Policy::Bucket { .. } | Policy::Borrowing { .. } => {
                let full_at = self.calls.iter().fold(0, |full_at, call| full_at.max(call.slot) + call.price);
                (peek.reset_after, 0.max(full_at - now))
            }
            Policy::Interval { burst, refill, every, .. } => {
                let (mut missing, mut then) = (0, 0);
                let mut calls = self.calls.clone();
                calls.sort_by_key(|call| call.id);
                let charges = calls.iter().map(|call| (call.called_at, call.price));
                for (at, price) in charges.chain([(now, 0)]) {
                    missing = 0.max(missing - refill * self.refills(every, then, at)) + price;
                    then = at;
                }
                (peek.remaining, 0.max(burst - missing))
            }
            _ => return Ok(()),
        };
        let error = || format!("expected {expected} after {:?}, got {peek:?}", self.calls);
        let holds = if self.moved { actual >= expected } else { actual == expected };
        holds.then_some(()).ok_or_else(error)
    }
}
