//! The algorithms: pure steps from a state, a rule, a time and a cost to a new state and a verdict. No clock, no lock, no
//! input or output, nothing asynchronous. Outside semver.
//!
//! Every algorithm is written twice, here and in the Lua file of the same name, in the same order: `check` reads, and
//! `commit` charges what was checked. What a check has read is a few numbers, which a script replies; the verdict on them
//! is computed here for both.

pub mod fixed_window;
pub mod gcra;
pub mod interval_bucket;
pub mod sliding_window;

use std::fmt;

use fixed_window::FixedWindowRule;
use gcra::Gcra;
use interval_bucket::IntervalBucket;
use sliding_window::{Log, SlidingWindowRule};

/// A policy in the numbers that its algorithm counts in: permits, and microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rule {
    /// A continuous token bucket, or a leaky bucket as a meter.
    Gcra(Gcra),
    /// A token bucket that refills at intervals.
    IntervalBucket(IntervalBucket),
    /// A fixed window.
    FixedWindow(FixedWindowRule),
    /// A sliding window.
    SlidingWindow(SlidingWindowRule),
}

/// What a key holds. A key that is absent says as much as one whose state has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// When the bucket will be full.
    Gcra(u64),
    /// A moment of refill, and the permits missing right after it.
    IntervalBucket {
        /// The moment.
        anchor: u64,
        /// The permits.
        missing: u64,
    },
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
pub type Reading = [u64; 3];

/// What a rule says of a call, given a reading. Times are microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// Whether this rule admits the call.
    pub admitted: bool,
    /// The permits this rule could ever give at once.
    pub limit: u64,
    /// The whole permits a call now would get: after this one if it is charged, else before it.
    pub remaining: u64,
    /// How long until the same call would be admitted. `None` if it is, or never would be.
    pub retry_after: Option<u64>,
    /// How long until the state says nothing more: after this call if it is charged.
    pub reset_after: u64,
    /// What a refund of the charge needs to know.
    pub mark: Mark,
}

/// Names one charge, so that a refund gives back what of it still counts and nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// When the charged bucket would be full, or the first charge of the charged window or sub-window came.
    pub at: u64,
    /// The permits missing right after the charge, where `at` does not say it.
    pub level: u64,
}

macro_rules! each {
    ($rule:expr, $inner:ident => $then:expr) => {
        match $rule {
            Rule::Gcra($inner) => $then,
            Rule::IntervalBucket($inner) => $then,
            Rule::FixedWindow($inner) => $then,
            Rule::SlidingWindow($inner) => $then,
        }
    };
}

impl Rule {
    /// Reads the state for a call of this cost.
    #[must_use]
    pub fn check(&self, state: Option<&State>, now: u64, cost: u64) -> Reading {
        each!(self, rule => rule.check(state, now, cost))
    }

    /// What the reading means for a call of this cost. A cost of 0 only looks.
    #[must_use]
    pub fn verdict(&self, reading: Reading, now: u64, cost: u64) -> Verdict {
        each!(self, rule => rule.verdict(reading, now, cost))
    }

    /// Charges an admitted call.
    pub fn commit(&self, state: &mut Option<State>, reading: Reading, now: u64, cost: u64) {
        each!(self, rule => rule.commit(state, reading, now, cost));
    }

    /// Leaves the state of a refused call as it is, unless it lies in the future: that is moved to now, so that a clock
    /// that stepped back locks nobody out for longer than a full period.
    pub fn undo(&self, state: &mut Option<State>, now: u64) {
        each!(self, rule => rule.undo(state, now));
    }

    /// Gives back `cost` permits: of the charge so marked, or of whatever the key holds.
    pub fn refund(&self, state: &mut Option<State>, now: u64, cost: u64, mark: Option<Mark>) {
        each!(self, rule => rule.refund(state, now, cost, mark));
    }

    /// When the state will say nothing more.
    #[must_use]
    pub fn ends(&self, state: &State) -> u64 {
        each!(self, rule => rule.ends(state))
    }

    /// The permits this rule could ever give at once.
    #[must_use]
    pub const fn limit(&self) -> u64 {
        match self {
            Rule::Gcra(rule) => rule.limit(),
            Rule::IntervalBucket(rule) => rule.burst,
            Rule::FixedWindow(rule) => rule.limit,
            Rule::SlidingWindow(rule) => rule.limit,
        }
    }

    /// The name of the algorithm's Lua file.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Rule::Gcra(_) => "gcra",
            Rule::IntervalBucket(_) => "interval_bucket",
            Rule::FixedWindow(_) => "fixed_window",
            Rule::SlidingWindow(_) => "sliding_window",
        }
    }
}

/// The algorithm, the version of its layout, and the numbers that shape the state: rules of one such text share one state.
impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        each!(self, rule => rule.shape(f))
    }
}
