//! The calls of the pictures, decided by an algorithm.

use ratelimit_runtime::algorithm::AlgorithmSpec;

use crate::simulation::{Charge, KeyStates};

/// How long the pictures are, in microseconds.
pub(super) const END: u64 = 20 * SECOND;
pub(super) const SECOND: u64 = 1_000_000;

/// How far apart the permits left are read, in microseconds.
const STEP: u64 = SECOND / 20;

/// A call and what has become of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DecidedCall {
    pub(super) at: u64,
    pub(super) cost: u64,
    /// When it starts, if it is admitted.
    pub(super) start: Option<u64>,
}

/// All calls, and the permits left over time.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) calls: Vec<DecidedCall>,
    /// The times from which on this many permits are left.
    pub(super) left: Vec<(u64, u64)>,
    /// The most that can be left.
    pub(super) limit: u64,
}

/// The times of the calls in milliseconds, and their costs: a burst, an even flow, an expensive call, single calls, and a
/// longer burst around a multiple of five seconds.
fn calls() -> impl Iterator<Item = (u64, u64)> {
    let burst = (0..8).map(|i| (500 + 200 * i, 1));
    let even = (0..3).map(|i| (2500 + 1000 * i, 1));
    let expensive = [(6150, 4)];
    let single = [7000, 8000, 11_200].map(|millis| (millis, 1));
    let long_burst = (0..13).map(|i| (14_200 + 200 * i, 1));
    let last = (0..2).map(|i| (18_000 + 1000 * i, 1));
    burst.chain(even).chain(expensive).chain(single).chain(long_burst).chain(last)
}

impl Run {
    /// Decides the calls by this algorithm.
    pub(super) fn new(spec: AlgorithmSpec) -> Self {
        let (mut states, mut verdicts) = (KeyStates::default(), Vec::new());
        let mut decided = Run { calls: Vec::new(), left: Vec::new(), limit: 0 };
        let mut calls = calls().map(|(millis, cost)| (millis * 1000, cost)).peekable();
        for now in (0..=END).step_by(STEP as usize) {
            while let Some((at, cost)) = calls.next_if(|(at, _)| *at <= now) {
                let is_admitted = states.decide(&[Charge { spec, cost }], at, &mut verdicts);
                let start = is_admitted.then(|| at + verdicts[0].wait);
                decided.calls.push(DecidedCall { at, cost, start });
            }
            states.decide(&[Charge { spec, cost: 0 }], now, &mut verdicts);
            let left = verdicts[0].remaining;
            decided.limit = decided.limit.max(left);
            if decided.left.last().is_none_or(|(_, before)| *before != left) {
                decided.left.push((now, left));
            }
        }
        decided
    }

    /// Returns how many calls start at once, how many wait, and how many are refused.
    pub(super) fn totals(&self) -> (usize, usize, usize) {
        let count = |test: fn(&DecidedCall) -> bool| self.calls.iter().filter(|call| test(call)).count();
        (count(DecidedCall::starts_at_once), count(DecidedCall::waits), count(|call| call.start.is_none()))
    }
}

impl DecidedCall {
    pub(super) fn starts_at_once(&self) -> bool {
        self.start == Some(self.at)
    }

    pub(super) fn waits(&self) -> bool {
        self.start.is_some_and(|start| start > self.at)
    }
}
