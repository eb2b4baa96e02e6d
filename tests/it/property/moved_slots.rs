//! What calls that wait are told of the pauses of their keys.

use ratelimit_runtime::store::Outcome;

/// Calls that wait for buckets.
#[derive(Default)]
pub(super) struct MovedSlots(Vec<Waiting>);

struct Waiting {
    key: usize,
    id: usize,
    /// When it starts by now.
    slot: i128,
    /// By how much slots had moved when it was given, in each store.
    moved: Vec<i128>,
    /// For how long the bucket had stood still then.
    stood_still: i128,
}

/// Returns by how much slots have moved of the key of a charge.
pub(super) fn of(outcome: &Outcome, charge: usize) -> i128 {
    let pause = outcome.paused.iter().find(|(of, _)| *of == charge);
    pause.map_or(0, |(_, pause)| pause.moved.into())
}

impl MovedSlots {
    pub(super) fn add(&mut self, key: usize, id: usize, slot: i128, moved: Vec<i128>, stood_still: i128) {
        self.0.push(Waiting { key, id, slot, moved, stood_still });
    }

    pub(super) fn leave(&mut self, id: usize) {
        self.0.retain(|waiting| waiting.id != id);
    }

    pub(super) fn forget(&mut self, key: usize) {
        self.0.retain(|waiting| waiting.key != key);
    }

    pub(super) fn pause(&mut self, key: usize, now: i128, longer: i128) {
        for waiting in self.0.iter_mut().filter(|waiting| waiting.key == key && waiting.slot > now) {
            waiting.slot += longer;
        }
    }

    /// Checks that a call that asks before its slot learns of all pauses since it was given.
    pub(super) fn check(
        &self,
        key: usize,
        now: i128,
        moved: &[i128],
        stood_still: i128,
    ) -> Result<(), String> {
        for waiting in self.0.iter().filter(|waiting| waiting.key == key && waiting.slot > now) {
            let since = stood_still - waiting.stood_still;
            let told = moved.iter().zip(&waiting.moved).map(|(moved, before)| moved - before);
            if told.clone().any(|told| told != since) {
                let told: Vec<i128> = told.collect();
                return Err(format!("a call with slot {} moves by {told:?}, not by {since}", waiting.slot));
            }
        }
        Ok(())
    }
}
