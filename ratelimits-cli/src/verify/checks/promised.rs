//! What a policy promises of the calls of one key.

use std::fmt;

/// A call that was admitted, or refused.
#[derive(Clone, Copy, Debug)]
pub(in crate::verify) struct Call {
    pub(in crate::verify) time: u64,
    pub(in crate::verify) cost: u64,
    /// When an admitted call has ended, where that matters.
    pub(in crate::verify) end: u64,
}

/// An interval in which too much was admitted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::verify) struct Interval {
    /// The time of its first call.
    pub(in crate::verify) from: u64,
    /// The time of its last call; of calls that run at once, of the first end.
    pub(in crate::verify) to: u64,
    pub(in crate::verify) admitted: u64,
    /// The most permits that the policy admits, with the clock's error.
    pub(in crate::verify) allowed: u64,
    /// Whether calls from before the log could make this no excess.
    pub(in crate::verify) is_from_first: bool,
}

impl Interval {
    pub(in crate::verify) fn excess(&self) -> u64 {
        self.admitted - self.allowed
    }
}

/// What a policy promises of the calls of one key.
pub(super) trait Promised: fmt::Debug {
    /// What the calls of a key leave.
    type State: Default + fmt::Debug;

    /// Counts an admitted call. Returns the worst interval that ends with it, if that is exceeded.
    fn admit(&self, state: &mut Self::State, call: Call) -> Option<Interval>;

    /// Returns whether the policy would have admitted a call as well, if a log can tell.
    fn would_admit(&self, state: &mut Self::State, call: Call) -> Option<bool>;

    /// Returns when calls from before a log that begins at this time no longer matter.
    fn settled(&self, first: u64) -> u64;
}
