//! Generic cell rate algorithm (ITU-T I.371): continuous token buckets and leaky buckets, as a meter and as a queue.
//! Twin of lua/gcra.lua: change both or neither.
//!
//! All of them advance one theoretical arrival time, and differ in how far it may be ahead of a call's slot. A call that waits
//! advances it further than the bucket reaches, and so takes its slot before it comes.

use std::fmt;

use super::{CREDITS_WRAP, ChargeId, Snapshot, State, Verdict, since};
use crate::bounds::LONGEST_MICROS;
use crate::rate::Rate;

/// A bucket in microseconds of its refill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Gcra {
    /// What a call may take.
    pub kind: Kind,
    /// The microseconds one permit takes to come back.
    pub interval: u64,
    /// The microseconds from empty to full; of a queue, those that its line is long at the most.
    pub capacity: u64,
}

/// What a call may take. The same numbers under another kind are another policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What the bucket holds.
    TokenBucket,
    /// The same, seen from the other side.
    Meter,
    /// Anything while there is no debt, at this rate.
    Borrowing(Rate),
    /// The next places in a line.
    Queue,
}

/// When the bucket will be full again, and what more there is to know while calls wait or after a refund.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Bucket {
    /// The theoretical arrival time.
    tat: u64,
    /// All that was given back to charges that others were made after, as a running total.
    credited: u64,
    /// When none of the charges that this concerns can be given back any more.
    until: u64,
    /// The last slot that a call waits for, or a little later; 0 for none.
    slot: u64,
    /// When it was written, where the arrival time is beyond what the bucket holds or the others are not 0.
    written: Option<u64>,
}

impl Gcra {
    /// The microseconds of refill that a cost takes: one more than there ever are for all that never fit.
    pub(crate) fn charge(&self, cost: u64) -> u64 {
        match self.kind {
            Kind::Borrowing(rate) => rate.takes(cost).unwrap_or(LONGEST_MICROS + 1),
            _ => cost.saturating_mul(self.interval).min(self.capacity + 1),
        }
    }

    /// How far the arrival time may be ahead of the slot of a call. `None` for one that never gets in.
    pub(crate) fn lead(&self, charge: u64) -> Option<u64> {
        match self.kind {
            Kind::TokenBucket | Kind::Meter => self.capacity.checked_sub(charge),
            Kind::Borrowing(_) => (charge <= LONGEST_MICROS).then_some(self.capacity),
            Kind::Queue => (charge <= self.capacity).then_some(0),
        }
    }

    /// How long a call may wait that waits for `wait` at the most: in a queue for no place beyond its end.
    pub(crate) fn patience(&self, charge: u64, wait: u64) -> u64 {
        match self.kind {
            Kind::Queue => wait.min(self.capacity.saturating_sub(charge)),
            _ => wait,
        }
    }

    /// The permits that come back in so many microseconds.
    fn permits(&self, micros: u64) -> u64 {
        match self.kind {
            Kind::Borrowing(rate) => rate.gives(micros),
            _ => micros / self.interval,
        }
    }

    pub(super) fn limit(&self) -> u64 {
        // One that lends admits a permit, however little it holds.
        self.permits(self.capacity).max(1)
    }

    /// The permits that one call may ask for, if there is a bound.
    pub(super) const fn max_cost(&self) -> Option<u64> {
        match self.kind {
            Kind::Borrowing(_) => None,
            _ => Some(self.capacity / self.interval),
        }
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, _cost: u64) -> Snapshot {
        let bucket = self.current(stored(state), now);
        [bucket.tat.max(now), bucket.credited, 0]
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        let (charge, level) = (self.charge(cost), snapshot[0].saturating_sub(now));
        let until_slot = match cost {
            0 => Some(0),
            _ => self.lead(charge).map(|lead| level.saturating_sub(lead)),
        };
        let patience = self.patience(charge, wait);
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= patience);
        let after = if admitted { level + charge } else { level };
        // In a queue it is room that a refused call comes back for.
        let waited = if self.kind == Kind::Queue { patience } else { 0 };
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.limit(),
            remaining: self.permits(self.capacity.saturating_sub(after)),
            retry_after: until_slot.filter(|_| !admitted).map(|until_slot| until_slot - waited),
            reset_after: after,
            charge_id: ChargeId { at: now + after, level: 0, credited: snapshot[1] },
        }
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        let (bucket, charge) = (self.current(stored(state.as_ref()), now), self.charge(cost));
        let tat = snapshot[0] + charge;
        let waits = tat > now + self.capacity;
        let slot = if waits { snapshot[0].saturating_sub(self.lead(charge).unwrap_or(0)) } else { 0 };
        let (slot, until) = (bucket.slot.max(slot), bucket.until.max(tat));
        *state = self.kept(Bucket { tat, slot, until, ..bucket }, now);
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        let (was, bucket) = (stored(state.as_ref()), self.current(stored(state.as_ref()), now));
        if bucket.tat < was.tat {
            *state = self.kept(bucket, now);
        }
    }

    /// A charge is given back as far as the bucket, had nothing been charged after it, would not be full before now, nor before
    /// the last slot that a call waits for: so far, giving back moves all that comes after by the same. A place in a queue
    /// is given back while it is the last.
    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        let Bucket { tat, credited, until, slot, .. } = self.current(stored(state.as_ref()), now);
        let (at, then) = charge_id.map_or((tat, credited), |charge_id| (charge_id.at, charge_id.credited));
        let last = (at, then) == (tat, credited);
        let full = at.saturating_sub(since(then, credited));
        let worth = full.saturating_sub(now.max(slot));
        let charge = self.charge(cost);
        let credit = if last || self.kind != Kind::Queue { charge.min(worth) } else { 0 };
        // Where it would be full later than it will be, the charge was to a state that is lost.
        if credit == 0 || full > tat {
            return;
        }
        let left = tat - credit;
        // Of the last charge, given back whole, no trace remains. Else the charges before are worth less from here on.
        let gone = last && (charge_id.is_some() && credit == charge || self.kind == Kind::Queue);
        let bound = if gone && credited == 0 { self.capacity } else { self.interval };
        let slot = slot.min(left.saturating_sub(bound));
        let (credited, until) =
            if gone { (credited, until) } else { ((credited + credit) % CREDITS_WRAP, until.max(tat)) };
        *state = self.kept(Bucket { tat: left, credited, until, slot, written: None }, now);
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        let bucket = stored(Some(state));
        bucket.tat.max(bucket.until)
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gcra { kind, interval, capacity } = self;
        match kind {
            Kind::TokenBucket => write!(out, "tb1-{interval}-{capacity}"),
            Kind::Meter => write!(out, "lb1-{interval}-{capacity}"),
            Kind::Queue => write!(out, "lq1-{interval}-{capacity}"),
            Kind::Borrowing(rate) => {
                write!(out, "bb1-{}-{}-{capacity}", rate.permits, rate.period.as_nanos())
            }
        }
    }

    /// The bucket as of now. One that was written later reaches no further from now than it did from then.
    fn current(&self, bucket: Bucket, now: u64) -> Bucket {
        let reach = bucket.written.map_or(0, |written| bucket.tat.saturating_sub(written)).max(self.capacity);
        let tat = bucket.tat.min(now + reach);
        let [until, slot] = [bucket.until, bucket.slot].map(|time| time.saturating_sub(bucket.tat - tat));
        let credited = if until > now { bucket.credited } else { 0 };
        Bucket { tat, credited, until, slot, written: bucket.written }
    }

    /// The bucket as it is stored: with no more than what says something.
    fn kept(&self, bucket: Bucket, now: u64) -> Option<State> {
        let Bucket { tat, credited, .. } = bucket;
        let slot = if bucket.slot > now { bucket.slot } else { 0 };
        let until = if credited > 0 { bucket.until } else { 0 };
        let written = (tat > now + self.capacity || slot > 0 || credited > 0).then_some(now);
        (tat.max(until) > now).then_some(State::Gcra(Bucket { tat, credited, until, slot, written }))
    }
}

fn stored(state: Option<&State>) -> Bucket {
    match state {
        Some(State::Gcra(bucket)) => *bucket,
        _ => Bucket::default(),
    }
}
