//! The algorithms: pure steps from a state, a spec, a time and a cost to a new state and a verdict. No clock, no lock, no
//! input or output, nothing asynchronous. Outside semver.
//!
//! Every algorithm is written twice, here and in the Lua file of the same name, in the same order: `check` reads, and
//! `commit` charges what was checked. What a check has read is a few numbers, which a script replies; the verdict on them
//! is computed here for both.

pub mod fixed_window;
pub mod gcra;
pub mod interval_bucket;
mod per_instance;
pub mod sliding_window;
pub mod warming_up;

use std::fmt;

use fixed_window::FixedWindowSpec;
use gcra::{Bucket, Gcra};
use interval_bucket::{IntervalBucket, Portions};
use sliding_window::{Log, SlidingWindowSpec};
use warming_up::{WarmingUp, Warmth};

/// A policy in the numbers that its algorithm counts in: permits, and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AlgorithmSpec {
    /// A continuous token bucket, or a leaky bucket.
    Gcra(Gcra),
    /// A token bucket that refills at intervals.
    IntervalBucket(IntervalBucket),
    /// A token bucket that warms up.
    WarmingUp(WarmingUp),
    /// A fixed window.
    FixedWindow(FixedWindowSpec),
    /// A sliding window.
    SlidingWindow(SlidingWindowSpec),
}

/// What a key holds. A key that is absent says as much as one whose state has ended.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// When the bucket will be full.
    Gcra(Bucket),
    /// A moment of refill, and the permits missing right after it.
    IntervalBucket(Portions),
    /// When the next call may go, and what is stored until then.
    WarmingUp(Warmth),
    /// An open window.
    FixedWindow {
        /// The time of its first charge.
        opened: u64,
        /// What was charged to it.
        count: u64,
    },
    /// The charges of a window.
    SlidingWindow(Log),
}

/// What a check has read, in the order of the Lua twin's reply; unused places are 0.
pub type Snapshot = [u64; 3];

/// What a spec says of a call, given a snapshot. Times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether this spec admits the call.
    pub admitted: bool,
    /// How long an admitted call has to wait: its permits are taken already, for the time when it is over.
    pub wait: u64,
    /// The permits this spec could ever give at once.
    pub limit: u64,
    /// The whole permits a call now would get: after this one if it is charged, else before it.
    pub remaining: u64,
    /// How long until the same call would be admitted without waiting, or in a queue until there is room for it. `None` if it
    /// is admitted, or never would be.
    pub retry_after: Option<u64>,
    /// How long until the state says nothing more: after this call if it is charged.
    pub reset_after: u64,
    /// What a refund of the charge needs to know.
    pub charge_id: ChargeId,
}

/// Names one charge, so that a refund gives back what of it still counts and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChargeId {
    /// When the charged bucket would be full, or the first charge of the charged window or sub-window came.
    pub at: u64,
    /// The permits missing right after the charge, or as the bits of a double those stored before it, where `at` does not
    /// say it.
    pub level: u64,
    /// What had been given back before the charge, as the running total of buckets.
    pub credited: u64,
}

/// The running total of what a bucket gave back wraps here. What two of them tell is how much was given back in between, in the
/// time that a charge is worth something.
const CREDITS_WRAP: u64 = 1 << 50;

/// What was given back from one total to the other.
fn since(then: u64, credited: u64) -> u64 {
    (credited + CREDITS_WRAP - then) % CREDITS_WRAP
}

macro_rules! each {
    ($spec:expr, $inner:ident => $then:expr) => {
        match $spec {
            AlgorithmSpec::Gcra($inner) => $then,
            AlgorithmSpec::IntervalBucket($inner) => $then,
            AlgorithmSpec::WarmingUp($inner) => $then,
            AlgorithmSpec::FixedWindow($inner) => $then,
            AlgorithmSpec::SlidingWindow($inner) => $then,
        }
    };
}

impl AlgorithmSpec {
    /// Reads the state for a call of this cost.
    #[must_use]
    pub fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Snapshot {
        each!(self, spec => spec.check(state, now, cost))
    }

    /// What the snapshot means for a call of this cost that waits for `wait` microseconds at the most. A cost of 0 only looks. A
    /// window admits a call or does not: nobody waits for what it will have.
    #[must_use]
    pub fn verdict(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64) -> Verdict {
        match self {
            AlgorithmSpec::Gcra(spec) => spec.verdict(snapshot, now, cost, wait),
            AlgorithmSpec::IntervalBucket(spec) => spec.verdict(snapshot, now, cost, wait),
            AlgorithmSpec::WarmingUp(spec) => spec.verdict(snapshot, now, cost, wait),
            AlgorithmSpec::FixedWindow(spec) => spec.verdict(snapshot, now, cost),
            AlgorithmSpec::SlidingWindow(spec) => spec.verdict(snapshot, now, cost),
        }
    }

    /// Whether a call can take permits that are yet to come, and wait for them.
    #[must_use]
    pub fn reserves(&self) -> bool {
        !matches!(self, AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::SlidingWindow(_))
    }

    /// Charges an admitted call.
    pub fn commit(&self, state: &mut Option<State>, snapshot: Snapshot, now: u64, cost: u64) {
        each!(self, spec => spec.commit(state, snapshot, now, cost));
    }

    /// Leaves the state of a refused call as it is, unless it lies in the future: that is moved to now, so that a clock
    /// that stepped back locks nobody out for longer than a full period.
    pub fn undo(&self, state: &mut Option<State>, now: u64) {
        each!(self, spec => spec.undo(state, now));
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds.
    pub fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, charge_id: Option<ChargeId>) {
        each!(self, spec => spec.refund(state, now, cost, charge_id));
    }

    /// When the state will say nothing more.
    #[must_use]
    pub fn ends(&self, state: &State) -> u64 {
        each!(self, spec => spec.ends(state))
    }

    /// The permits that one call may ask for, if there is a bound.
    #[must_use]
    pub const fn max_cost(&self) -> Option<u64> {
        match self {
            AlgorithmSpec::Gcra(spec) => spec.max_cost(),
            AlgorithmSpec::IntervalBucket(spec) => Some(spec.burst),
            AlgorithmSpec::WarmingUp(_) => None,
            AlgorithmSpec::FixedWindow(spec) => Some(spec.limit),
            AlgorithmSpec::SlidingWindow(spec) => Some(spec.limit),
        }
    }

    /// Whether a call of this cost is ever admitted.
    #[must_use]
    pub fn fits(&self, cost: u64) -> bool {
        self.verdict(self.check(None, 0, cost), 0, cost, 0).admitted
    }

    /// For how many permits calls wait in a queue at the most.
    #[must_use]
    pub fn waiting_room(&self) -> Option<u64> {
        match self {
            AlgorithmSpec::Gcra(Gcra { kind: gcra::Kind::Queue, capacity, interval }) => {
                Some(capacity / interval - 1)
            }
            _ => None,
        }
    }

    /// The name of the algorithm's Lua file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            AlgorithmSpec::Gcra(_) => "gcra",
            AlgorithmSpec::IntervalBucket(_) => "interval_bucket",
            AlgorithmSpec::WarmingUp(_) => "warming_up",
            AlgorithmSpec::FixedWindow(_) => "fixed_window",
            AlgorithmSpec::SlidingWindow(_) => "sliding_window",
        }
    }
}

/// The algorithm, the version of its layout, and the numbers that shape the state: specs of one such text share one state.
impl fmt::Display for AlgorithmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, spec => spec.shape(f))
    }
}
