//! Buckets that decide by other numbers than those they were written with, on the same keys.
//!
//! The keys of a literal bucket have a *plain* layout, which depends on its numbers: a state does not say its rate. With other
//! numbers the state changes to the layout of a bucket whose numbers change from call to call, and the steps are those of such
//! a bucket. Both layouts hold the same missing permits, so each kind of call reads what the other has left.
//!
//! A call by the numbers as written returns a key to the plain layout once no receipt from before the last change is worth
//! anything: receipts for plain states do not say when their charges were made.

use std::collections::HashSet;
use std::fmt;
use std::sync::{LazyLock, PoisonError, RwLock};

use super::adjustable_gcra::AdjustableGcraSpec;
use super::gcra::GcraSpec;
use super::interval_bucket::IntervalBucketSpec;
use super::state::State;
use super::verdict::{ChargeId, Snapshot, Verdict};
use super::warming_up::WarmingUpSpec;

/// A bucket with the numbers by which it decides, and those in the shape of its keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChangedSpec {
    /// Of a bucket that refills continuously.
    Gcra {
        /// The numbers in the shape.
        as_written: GcraSpec,
        /// The numbers that decide.
        to: GcraSpec,
    },
    /// Of a token bucket with interval refill. The periods are the same.
    IntervalBucket {
        /// The numbers in the shape.
        as_written: IntervalBucketSpec,
        /// The numbers that decide, adjustable.
        to: IntervalBucketSpec,
    },
    /// Of a token bucket that warms up, whose layouts differ only in Redis.
    WarmingUp {
        /// The numbers in the shape.
        as_written: WarmingUpSpec,
        /// The numbers that decide, adjustable.
        to: WarmingUpSpec,
    },
}

/// Evaluates the same expression for the spec that decides.
macro_rules! decide {
    ($self:expr, $to:ident => $then:expr) => {
        match $self {
            ChangedSpec::Gcra { to, .. } => {
                let $to = AdjustableGcraSpec(*to);
                $then
            }
            ChangedSpec::IntervalBucket { to: $to, .. } => $then,
            ChangedSpec::WarmingUp { to: $to, .. } => $then,
        }
    };
}

impl ChangedSpec {
    pub(super) const fn interval_bucket(as_written: IntervalBucketSpec, to: IntervalBucketSpec) -> Self {
        ChangedSpec::IntervalBucket { as_written, to: IntervalBucketSpec { adjustable: true, ..to } }
    }

    pub(super) const fn warming_up(as_written: WarmingUpSpec, to: WarmingUpSpec) -> Self {
        ChangedSpec::WarmingUp { as_written, to: WarmingUpSpec { adjustable: true, ..to } }
    }

    /// Returns a reference that is never freed, the same one for equal specs, so that specs remain small. Changes are rare: a
    /// process has one spec for each pair of numbers that it has ever had. Only this takes a lock, and no step.
    pub(super) fn interned(self) -> &'static Self {
        static INTERNED: LazyLock<RwLock<HashSet<&'static ChangedSpec>>> = LazyLock::new(RwLock::default);
        if let Some(known) = INTERNED.read().unwrap_or_else(PoisonError::into_inner).get(&self) {
            return known;
        }
        let mut interned = INTERNED.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = interned.get(&self) {
            return known;
        }
        let new: &'static ChangedSpec = Box::leak(Box::new(self));
        interned.insert(new);
        new
    }

    pub(super) fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        let state = self.adjustable(state);
        decide!(self, to => to.check(state.as_ref(), now, cost))
    }

    pub(super) fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        decide!(self, to => to.verdict(snapshot, now, cost, wait))
    }

    pub(super) fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        *state = self.adjustable(state.as_ref());
        match self {
            ChangedSpec::Gcra { to, .. } => {
                AdjustableGcraSpec(*to).commit_changed(state, snapshot, now, cost)
            }
            ChangedSpec::IntervalBucket { to, .. } => to.commit_changed(state, snapshot, now, cost),
            ChangedSpec::WarmingUp { to, .. } => to.commit(state, snapshot, now, cost),
        }
        if let Some(plain) = state.as_ref().and_then(|state| self.plain(state, now)) {
            *state = Some(plain);
        }
    }

    pub(super) fn undo(&self, state: &mut Option<State>, now: u64) {
        self.change(state, |state| decide!(self, to => to.undo(state, now)));
    }

    pub(super) fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        self.change(state, |state| decide!(self, to => to.refund(state, now, cost, charge_id)));
    }

    pub(super) fn ends(&self, state: &State) -> u64 {
        self.adjustable(Some(state)).map_or(0, |state| decide!(self, to => to.ends(&state)))
    }

    pub(super) fn shape(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangedSpec::Gcra { as_written, .. } => as_written.shape(out),
            ChangedSpec::IntervalBucket { as_written, .. } => as_written.shape(out),
            ChangedSpec::WarmingUp { as_written, .. } => as_written.shape(out),
        }
    }

    /// Returns the state in the layout of numbers that change.
    fn adjustable(&self, state: Option<&State>) -> Option<State> {
        Some(match (self, state?) {
            (ChangedSpec::Gcra { as_written, .. }, State::Gcra(bucket)) => {
                State::AdjustableGcra(Box::new(AdjustableGcraSpec(*as_written).adjustable_state(bucket)))
            }
            (ChangedSpec::IntervalBucket { as_written, .. }, State::IntervalBucket(bucket)) => {
                State::IntervalBucket(as_written.adjustable_state(bucket))
            }
            (_, state) => state.clone(),
        })
    }

    /// Returns the state in the plain layout, if it is at the numbers as written and so is this spec.
    fn plain(&self, state: &State, now: u64) -> Option<State> {
        match (self, state) {
            (ChangedSpec::Gcra { as_written, to }, State::AdjustableGcra(bucket)) if as_written == to => {
                let bucket = AdjustableGcraSpec(*to).plain_state(bucket)?;
                as_written.keep(bucket, now)
            }
            (ChangedSpec::IntervalBucket { as_written, to }, State::IntervalBucket(bucket))
                if as_written.has_numbers_of(to) =>
            {
                as_written.keep(as_written.plain_state(bucket, now)?, now)
            }
            _ => None,
        }
    }

    /// Changes the state in the layout of numbers that change, and leaves the layout as it is if nothing changes.
    fn change(&self, state: &mut Option<State>, change: impl FnOnce(&mut Option<State>)) {
        let before = self.adjustable(state.as_ref());
        let mut after = before.clone();
        change(&mut after);
        if after != before {
            *state = after;
        }
    }
}

#[cfg(test)]
mod properties;
