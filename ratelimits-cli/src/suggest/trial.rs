//! What policies refuse of the calls of a log, by the algorithms of the library.

use ratelimit_runtime::algorithm::{AlgorithmSpec, State};
use serde::Serialize;

use super::demand::{Call, Demand};

/// What becomes of one part of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Outcome {
    pub(super) calls: u64,
    pub(super) keys: u64,
    pub(super) refused: u64,
    pub(super) refused_keys: u64,
}

/// What becomes of the part that numbers are chosen by, and of the part that is held out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Outcomes {
    pub(super) used: Outcome,
    pub(super) held_out: Outcome,
}

/// Decides all calls. Those held out find the states that the others have left.
pub(super) fn outcomes(spec: &AlgorithmSpec, demand: &Demand) -> Outcomes {
    let (mut used, mut held_out) = (Outcome::default(), Outcome::default());
    for calls in demand.by_key() {
        let mut state = None;
        let parts = demand.parts(calls);
        used.add(parts.0, refused(spec, &mut state, parts.0));
        held_out.add(parts.1, refused(spec, &mut state, parts.1));
    }
    Outcomes { used, held_out }
}

/// Decides calls of one key. Returns how many are refused.
pub(super) fn refused(spec: &AlgorithmSpec, state: &mut Option<State>, calls: &[Call]) -> u64 {
    let mut refused = 0;
    // A cost of 0 passes without being counted.
    for Call { time, cost, .. } in calls.iter().filter(|call| call.cost > 0) {
        let snapshot = spec.check(state.as_ref(), *time, *cost);
        if spec.verdict(snapshot, *time, *cost, 0).admitted {
            spec.commit(state, snapshot, *time, *cost);
        } else {
            refused += 1;
        }
    }
    refused
}

impl Outcome {
    fn add(&mut self, calls: &[Call], refused: u64) {
        self.calls += calls.len() as u64;
        self.keys += u64::from(!calls.is_empty());
        self.refused += refused;
        self.refused_keys += u64::from(refused > 0);
    }
}
