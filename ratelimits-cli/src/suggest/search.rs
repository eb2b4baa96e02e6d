//! The smallest number of a policy that refuses few enough calls.
//!
//! If each call takes one permit, a bucket with at least the burst and the rate of another, or a window with at least its limit, has
//! admitted at least as many calls of a key at all times. Take the first call that only the smaller one admits, where both have
//! admitted as many before. The larger one refuses it because since some time it has admitted all that it may; since then the smaller
//! one has admitted no fewer, and with this call more than it may itself. So the calls that are refused never increase with the
//! number, and bisection finds the smallest number exactly.
//!
//! Where calls take several permits, a larger bucket may admit a call that leaves too little for several others. Bisection then finds a
//! number that does, which need not be the smallest.
//!
//! What a number does not refuse of a key, no larger one does, whatever calls take: until its first refusal a state does not depend on
//! the number. So keys of which a number that is too small refuses none are not looked at again.

use std::ops::RangeInclusive;

use ratelimit_runtime::algorithm::AlgorithmSpec;

use super::demand::{Call, Demand};
use super::trial::refused;

/// A search through policies that differ in one number.
#[derive(Clone, Debug)]
pub(super) struct Search<'d> {
    /// The calls of each key of which a policy may refuse some.
    keys: Vec<&'d [Call]>,
    /// How many calls may be refused.
    most: u64,
}

impl<'d> Search<'d> {
    /// Searches the part of a log that is not held out.
    pub(super) fn new(demand: &'d Demand, most: u64) -> Self {
        let used = demand.by_key().map(|calls| demand.parts(calls).0);
        let mut keys: Vec<_> = used.filter(|calls| !calls.is_empty()).collect();
        // Those that are likely refused tell early that a number is too small.
        keys.sort_by_key(|calls| std::cmp::Reverse(calls.len()));
        Search { keys, most }
    }

    /// Returns the smallest number in the range that refuses few enough calls. `None` if the largest one does not. A number that is out
    /// of bounds has no policy.
    pub(super) fn smallest(
        &self,
        range: RangeInclusive<u64>,
        policy: impl Fn(u64) -> Option<AlgorithmSpec>,
    ) -> Option<u64> {
        let (mut low, mut high) = range.into_inner();
        let mut search = self.clone();
        if low > high || !search.suffices(policy(high)) {
            return None;
        }
        while low < high {
            let middle = low.midpoint(high);
            if search.suffices(policy(middle)) { high = middle } else { low = middle + 1 }
        }
        Some(high)
    }

    /// Returns whether a policy refuses few enough calls. If it does not, keys of which it refuses none are dropped: those with larger
    /// numbers refuse none of them either.
    fn suffices(&mut self, policy: Option<AlgorithmSpec>) -> bool {
        let Some(spec) = policy else { return false };
        let (mut left, mut kept) = (self.most, Vec::new());
        for (at, calls) in self.keys.iter().enumerate() {
            let refused = refused(&spec, &mut None, calls);
            if refused > 0 {
                kept.push(*calls);
            }
            let Some(less) = left.checked_sub(refused) else {
                kept.extend(&self.keys[at + 1..]);
                self.keys = kept;
                return false;
            };
            left = less;
        }
        true
    }
}
