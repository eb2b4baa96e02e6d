//! Random histories of calls that are settled, and a bound that is checked in all intervals.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::algorithm::AlgorithmSpec;
use crate::base::property_tests::config;
use crate::base::rate::Rate;

/// A call that was admitted: its slot, and the microseconds of refill that it was charged and keeps.
#[derive(Clone, Copy, Debug)]
struct Call {
    slot: u64,
    charge: u64,
}

/// How a call is decided and settled: when it comes, after the one before; its cost and wait; how long it lasts, and how much of its
/// cost it uses, in quarters.
type Step = (u64, u64, u64, u64, u64);

/// What is known of a call that has not ended: when it will, its index, and what it was charged.
type Open = (u64, usize, ChargeId, u64, u64);

/// A bucket and its calls.
struct History {
    spec: AlgorithmSpec,
    state: Option<State>,
    calls: Vec<Call>,
}

fn spec(interval: u64, burst: u64, borrows: bool) -> AlgorithmSpec {
    let rate = Rate::new(1, Duration::from_micros(interval));
    let kind = if borrows { GcraKind::Borrowing(rate) } else { GcraKind::TokenBucket };
    AlgorithmSpec::SettledGcra(SettledGcraSpec(GcraSpec { kind, interval, capacity: interval * burst }))
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let pause = prop_oneof![3 => Just(0), 3 => 1..4_u64, 3 => 5..12_u64, 1 => 0..60_u64];
    let wait = prop_oneof![3 => Just(0), 1 => 1..40_u64];
    let lasts = prop_oneof![1 => Just(0), 2 => 1..20_u64, 2 => 20..300_u64];
    prop::collection::vec((pause, 1..5_u64, wait, lasts, 0..6_u64), 1..60)
}

impl History {
    /// Returns how many microseconds of refill are missing, by the bucket's own time.
    fn missing(&self, now: u64) -> u64 {
        let time = AlgorithmSpec::pause_of(self.state.as_ref(), now).map_or(now, |pause| pause.time(now));
        self.spec.check(self.state.as_ref(), now, 0)[0] - time
    }

    /// Calls that wait start later, and end later.
    fn pause(&mut self, now: u64, micros: u64, open: &mut [Open]) {
        let moved = |history: &Self| {
            AlgorithmSpec::pause_of(history.state.as_ref(), now).map_or(0, |pause| pause.moved)
        };
        let before = moved(self);
        self.spec.pause(&mut self.state, now, micros);
        let after = moved(self);
        for (at, index, ..) in open.iter_mut() {
            let call = &mut self.calls[*index];
            if call.slot > now {
                call.slot += after - before;
                *at += after - before;
            }
        }
    }

    fn settle(&mut self, (at, index, charge_id, cost, quarters): Open) {
        let used = cost * quarters / 4;
        if used > cost {
            self.spec.debit(&mut self.state, at, used - cost);
        } else {
            let before = self.missing(at);
            self.spec.refund(&mut self.state, at, cost - used, Some(charge_id));
            self.calls[index].charge -= before - self.missing(at);
        }
    }

    fn decide(&mut self, now: u64, (_, cost, wait, lasts, quarters): Step) -> Option<Open> {
        let snapshot = self.spec.check(self.state.as_ref(), now, cost);
        let pause = AlgorithmSpec::pause_of(self.state.as_ref(), now);
        let verdict = self.spec.verdict_in(pause, snapshot, now, cost, wait);
        if !verdict.admitted {
            return None;
        }
        self.spec.commit(&mut self.state, snapshot, now, cost);
        let slot = now + verdict.wait;
        if let Some(pause) = pause {
            assert!(slot >= pause.until);
        }
        self.calls.push(Call { slot, charge: verdict.charge_id.at - snapshot[0] });
        Some((slot + lasts, self.calls.len() - 1, verdict.charge_id, cost, quarters))
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn intervals_hold_what_is_left_of_charges(
        interval in prop::sample::select(vec![1, 3, 5, 10_u64]),
        burst in prop::sample::select(vec![2, 4, 8_u64]),
        borrows in any::<bool>(),
        steps in steps(),
        pauses in prop::collection::vec(prop_oneof![4 => Just(0), 1 => 1..100_u64], 60),
    ) {
        let mut history = History { spec: spec(interval, burst, borrows), state: None, calls: Vec::new() };
        let (mut now, mut open) = (1_000_000, Vec::<Open>::new());
        for (step, micros) in steps.into_iter().zip(pauses) {
            now += step.0;
            open.sort_by_key(|(at, ..)| *at);
            let ended = open.partition_point(|(at, ..)| *at <= now);
            open.drain(..ended).for_each(|open| history.settle(open));
            history.pause(now, micros, &mut open);
            open.extend(history.decide(now, step));
        }
        let mut calls = history.calls;
        calls.sort_by_key(|call| call.slot);
        for (index, first) in calls.iter().enumerate() {
            let (mut sum, mut largest) = (0, 0);
            for last in &calls[index..] {
                sum += last.charge;
                largest = largest.max(if borrows { last.charge } else { 0 });
                let within = interval * burst + last.slot - first.slot;
                prop_assert!(sum - largest <= within, "{sum} within {within} from {}: {calls:?}", first.slot);
            }
        }
    }

    #[test]
    fn last_charges_leave_no_trace(
        charges in prop::collection::vec((0..30_u64, 1..4_u64), 1..20),
        later in 0..20_u64,
    ) {
        let mut history = History { spec: spec(10, 10, false), state: None, calls: Vec::new() };
        let (mut now, mut last) = (1_000_000, None);
        for (pause, cost) in charges {
            now += pause;
            let before = history.missing(now);
            if let Some(open) = history.decide(now, (0, cost, 0, later, 0)) {
                last = Some((now + before, open));
            }
        }
        if let Some((full, open)) = last.filter(|(_, open)| open.0 >= now) {
            history.settle(open);
            prop_assert_eq!(history.missing(open.0), full.saturating_sub(open.0));
        }
    }
}
