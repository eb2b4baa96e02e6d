//! Decisions at given times, by the algorithms of the library.

use ratelimit_runtime::algorithm::{AlgorithmSpec, State, Verdict};

/// What one policy takes of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Charge {
    pub(super) spec: AlgorithmSpec,
    /// The permits. 0 passes without being counted.
    pub(super) cost: u64,
}

/// The states of one key, one for each policy.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyStates(Box<[Option<State>]>);

impl KeyStates {
    /// Decides a call as attributes on one function do: all policies charge it, or none does. Calls wait for a queue, and for
    /// no other policy. Times are in microseconds and must not decrease.
    ///
    /// Returns whether the call is admitted, and writes what each policy says to `verdicts`.
    pub(super) fn decide(&mut self, charges: &[Charge], now: u64, verdicts: &mut Vec<Verdict>) -> bool {
        if self.0.len() != charges.len() {
            self.0 = vec![None; charges.len()].into();
        }
        verdicts.clear();
        let pairs = charges.iter().zip(&self.0);
        let snapshots: Vec<_> =
            pairs.map(|(charge, state)| charge.spec.check(state.as_ref(), now, charge.cost)).collect();
        verdicts.extend(charges.iter().zip(&snapshots).map(|(charge, snapshot)| {
            let wait = if charge.spec.waiting_room().is_some() { u64::MAX } else { 0 };
            charge.spec.verdict(*snapshot, now, charge.cost, wait)
        }));
        let is_admitted =
            charges.iter().zip(&*verdicts).all(|(charge, verdict)| verdict.admitted || charge.cost == 0);
        for ((charge, state), snapshot) in charges.iter().zip(&mut self.0).zip(snapshots) {
            if is_admitted && charge.cost > 0 {
                charge.spec.commit(state, snapshot, now, charge.cost);
            }
        }
        is_admitted
    }

    /// Returns when the last state ends. From then on the key is as if it had made no call.
    pub(super) fn end(&self, charges: &[Charge]) -> u64 {
        let states = charges.iter().zip(&self.0);
        states.filter_map(|(charge, state)| Some(charge.spec.ends(state.as_ref()?))).max().unwrap_or(0)
    }
}
