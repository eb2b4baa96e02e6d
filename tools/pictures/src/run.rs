//! The calls of the pictures, decided by a policy.

use ratelimit_runtime::algorithm::{AlgorithmSpec, State, Verdict};
use ratelimits::observe::PolicyInfo;

/// How long the pictures are, in microseconds.
pub(crate) const END: u64 = 20 * SECOND;
pub(crate) const SECOND: u64 = 1_000_000;

/// How far apart the permits left are read, in microseconds.
const STEP: u64 = SECOND / 20;

/// A call and what has become of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DecidedCall {
    pub(crate) at: u64,
    pub(crate) cost: u64,
    /// When it starts, if it is admitted.
    pub(crate) start: Option<u64>,
}

/// All calls, and the permits left over time.
#[derive(Debug)]
pub(crate) struct Run {
    /// The policy as an attribute.
    pub(crate) attribute: String,
    pub(crate) calls: Vec<DecidedCall>,
    /// The times from which on this many permits are left.
    pub(crate) left: Vec<(u64, u64)>,
    /// The most that can be left.
    pub(crate) limit: u64,
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
    /// Decides the calls by this policy, all of whose numbers are literals.
    pub(crate) fn new(policy: &PolicyInfo) -> Self {
        let spec = policy.policy.and_then(|policy| policy.spec().ok());
        let mut key = KeyState { spec: spec.expect("the compiler has checked the numbers"), state: None };
        let text = policy.to_string();
        let attribute = text.split_once(": ").map_or(&*text, |(_, attribute)| attribute).to_owned();
        let mut decided = Run { attribute, calls: Vec::new(), left: Vec::new(), limit: 0 };
        let mut calls = calls().map(|(millis, cost)| (millis * 1000, cost)).peekable();
        for now in (0..=END).step_by(STEP as usize) {
            while let Some((at, cost)) = calls.next_if(|(at, _)| *at <= now) {
                let verdict = key.decide(at, cost);
                let start = verdict.admitted.then(|| at + verdict.wait);
                decided.calls.push(DecidedCall { at, cost, start });
            }
            let left = key.decide(now, 0).remaining;
            decided.limit = decided.limit.max(left);
            if decided.left.last().is_none_or(|(_, before)| *before != left) {
                decided.left.push((now, left));
            }
        }
        decided
    }

    /// Returns how many calls start at once, how many wait, and how many are refused.
    pub(crate) fn totals(&self) -> (usize, usize, usize) {
        let count = |test: fn(&DecidedCall) -> bool| self.calls.iter().filter(|call| test(call)).count();
        (count(DecidedCall::starts_at_once), count(DecidedCall::waits), count(|call| call.start.is_none()))
    }
}

/// The state of one key under a policy.
#[derive(Debug)]
struct KeyState {
    spec: AlgorithmSpec,
    state: Option<State>,
}

impl KeyState {
    /// Decides a call, which waits in a queue for as long as it takes, and nowhere else. One of cost 0 charges nothing.
    fn decide(&mut self, now: u64, cost: u64) -> Verdict {
        let snapshot = self.spec.check(self.state.as_ref(), now, cost);
        let wait = if self.spec.waiting_room().is_some() { u64::MAX } else { 0 };
        let verdict = self.spec.verdict(snapshot, now, cost, wait);
        if verdict.admitted && cost > 0 {
            self.spec.commit(&mut self.state, snapshot, now, cost);
        }
        verdict
    }
}

impl DecidedCall {
    pub(crate) fn starts_at_once(&self) -> bool {
        self.start == Some(self.at)
    }

    pub(crate) fn waits(&self) -> bool {
        self.start.is_some_and(|start| start > self.at)
    }
}
