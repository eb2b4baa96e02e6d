//! Mirrored charges: those of calls that another store has admitted, to a state that may have to stand in for it.
//!
//! They are never refused. A state without room for one owes it, and admits nothing until as much time has passed as if it had
//! admitted the call itself: otherwise each change from one store to the other would grant what refills in both. It owes at
//! most about one capacity, so that it soon admits calls again where the other store stays away.

use super::adjustable_gcra::AdjustableGcraSpec;
use super::gcra::GcraKind;
use super::settled_gcra::SettledGcraSpec;
use super::spec::AlgorithmSpec;
use super::state::State;
use super::verdict::{ChargeId, Snapshot};

impl AlgorithmSpec {
    /// Returns the permits that a mirrored charge takes from a bucket: all if there are any left or, if the bucket `owes`, until
    /// it owes as many as it holds. A bucket owes what it has charged for the future, so the charge is made like any other.
    pub(crate) fn mirrored_cost(&self, snapshot: Snapshot, now: u64, cost: u64, owes: bool) -> Option<u64> {
        // More than a share can hold takes all of it.
        let cost = self.max_cost().map_or(cost, |most| cost.min(most));
        let (level, owes) = (snapshot[0].saturating_sub(now), u64::from(owes));
        let takes = match self {
            AlgorithmSpec::Gcra(spec)
            | AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
            | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
                match spec.kind {
                    // The calls before it, decided here or there, may each have borrowed as much as the bucket holds.
                    GcraKind::Borrowing(_) => {
                        level <= spec.capacity + owes * (2 * spec.capacity + spec.charge(cost))
                    }
                    _ => level < spec.capacity + owes * spec.capacity,
                }
            }
            // The intervals of the other store may have begun later than the ones here, which is worth one refill.
            AlgorithmSpec::IntervalBucket(spec) => {
                snapshot[1] < spec.burst + owes * (spec.burst + spec.refill)
            }
            AlgorithmSpec::WarmingUp(_) => {
                let verdict = self.verdict(snapshot, now, cost, u64::MAX);
                verdict.admitted && level <= owes * verdict.charge_id.at.saturating_sub(snapshot[0])
            }
            AlgorithmSpec::FixedWindow(_)
            | AlgorithmSpec::CalendarWindow(_)
            | AlgorithmSpec::SlidingWindow(_)
            | AlgorithmSpec::Holds(_) => false,
        };
        takes.then_some(cost)
    }

    /// Makes a mirrored charge to a window: what fits and, if the window `owes`, up to its limit of the rest. A semaphore counts all
    /// that is held. Returns how much that is, and its id.
    pub(crate) fn mirror_to_window(
        &self,
        state: &mut Option<State>,
        now: u64,
        cost: u64,
        owes: bool,
    ) -> Option<(u64, ChargeId)> {
        self.change(state, now, None, |state, now| match self {
            AlgorithmSpec::FixedWindow(spec) => spec.mirror(state, now, cost, owes),
            AlgorithmSpec::CalendarWindow(spec) => spec.mirror(state, now, cost, owes),
            AlgorithmSpec::SlidingWindow(spec) => spec.mirror(state, now, cost, owes),
            AlgorithmSpec::Holds(spec) => spec.mirror(state, now, cost),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::base::property_tests::config;
    use crate::policy::{FixedWindow, Policy, SlidingWindow};

    fn policy() -> impl Strategy<Value = Policy> {
        let period = Duration::from_micros(1200);
        (1..6_u64, 0..4).prop_map(move |(limit, kind)| match kind {
            0 => FixedWindow::new(limit, period).into(),
            1 => FixedWindow::new(limit, period).aligned().into(),
            2 => SlidingWindow::new(limit, period).into(),
            _ => SlidingWindow::new(limit, period).precision(period / 4).into(),
        })
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn retry_after_is_exact_for_windows_that_owe(
            policy in policy(),
            charges in prop::collection::vec((0..800_u64, 1..4_u64), 1..12),
            cost in 1..6_u64,
        ) {
            let spec = policy.spec().unwrap();
            let (mut state, mut now) = (None, 1_000_000);
            for (pause, cost) in charges {
                now += pause;
                spec.mirror_to_window(&mut state, now, cost, true);
                let ends = state.as_ref().map_or(0, |state| spec.ends(state));
                let verdict = |at| spec.verdict(spec.check(state.as_ref(), at, cost), at, cost, 0);
                prop_assert!(verdict(ends).admitted || !spec.fits(cost));
            }
            let verdict = |at| spec.verdict(spec.check(state.as_ref(), at, cost), at, cost, 0);
            match verdict(now).retry_after {
                Some(wait) => {
                    prop_assert!(verdict(now + wait).admitted);
                    prop_assert!(!verdict(now + wait - 1).admitted);
                }
                None => prop_assert_eq!(verdict(now).admitted, spec.fits(cost)),
            }
        }
    }
}
