//! Pauses: times in which a key admits no call, whatever its algorithm. Twin of the functions for paused keys in lua/prelude.lua:
//! change both or neither.
//!
//! A paused key keeps the state of its algorithm, which is read and written as of the end of the pause, so that what is decided
//! meanwhile counts from then on. A bucket's time stands still, and one permit at most is left of it. Windows keep their counts.
//!
//! A key that was paused as a penalty remains paused, with nothing left of its pause, until all penalties are forgiven and it has
//! admitted a call.

use std::sync::Arc;

use super::gcra::GcraKind;
use super::pause::Pause;
use super::penalty::Penalty;
use super::spec::{AlgorithmSpec, dispatch};
use super::state::{PausedState, State};
use super::verdict::{Snapshot, Verdict};
use crate::base::bounds::MAX_PERMITS;

impl AlgorithmSpec {
    /// Returns the pause of a key, if its state has one.
    #[must_use]
    pub fn pause_of(state: Option<&State>, now: u64) -> Option<Pause> {
        match state {
            Some(State::Paused(paused)) => Some(paused.current(now)),
            _ => None,
        }
    }

    /// Admits no call until this many microseconds have passed, or until the key's pause is over if that takes longer.
    pub fn pause(&self, state: &mut Option<State>, now: u64, micros: u64) {
        let pause = Self::pause_of(state.as_ref(), now).unwrap_or_default();
        let (at, until) = (pause.time(now), now + micros);
        if until <= at {
            return;
        }
        let mut paused = match state.take() {
            Some(State::Paused(paused)) => paused,
            state => Arc::new(PausedState { pause, written: now, state }),
        };
        let of = Arc::make_mut(&mut paused);
        dispatch!(self, spec => spec.pause(&mut of.state, at, until - at));
        let penalty = Penalty { step: pause.step(now), ..pause.penalty };
        (of.pause, of.written) = (Pause { until, moved: pause.moved + until - at, penalty }, now);
        *state = Some(State::Paused(paused));
    }

    /// Pauses a key that has refused a call, for as many microseconds as its next step says; the last one is the longest. Returns the
    /// step, or `None` if the refusal is no penalty.
    pub fn penalize(&self, state: &mut Option<State>, now: u64, steps: &[u64]) -> Option<u64> {
        let pause = Self::pause_of(state.as_ref(), now).unwrap_or_default();
        let step = (pause.step(now) + 1).min(steps.len() as u64);
        let micros = *steps.get(usize::try_from(step).ok()?.checked_sub(1)?)?;
        if !pause.counts_refusals(now) {
            return None;
        }
        self.pause(state, now, micros);
        let Some(State::Paused(paused)) = state else { return None };
        let forgiven_in = steps.last().copied().unwrap_or(micros);
        Arc::make_mut(paused).pause.penalty = Penalty { step, is_spent: true, forgiven_in };
        Some(step)
    }

    /// Decides a call as [`verdict`](Self::verdict) does, given the key's pause.
    #[must_use]
    #[inline]
    pub fn verdict_in(
        &self,
        pause: Option<Pause>,
        snapshot: Snapshot,
        now: u64,
        cost: u64,
        wait: u64,
    ) -> Verdict {
        match pause.map_or(0, |pause| pause.left(now)) {
            0 => self.verdict(snapshot, now, cost, wait),
            left => self.verdict_while_paused(snapshot, now, cost, wait, left),
        }
    }

    /// Decides a call while so much of a pause is left.
    #[cold]
    fn verdict_while_paused(&self, snapshot: Snapshot, now: u64, cost: u64, wait: u64, left: u64) -> Verdict {
        let (at, queue) = (now + left, self.queue());
        // The script of a literal queue is told no more than how long a call waits in the queue.
        let wait = match self {
            AlgorithmSpec::Gcra(bucket) => bucket.max_wait(bucket.charge(cost), wait),
            _ => wait,
        };
        let verdict = self.verdict(snapshot, at, cost, wait);
        let can_wait = self.reserves() && left + verdict.wait <= wait;
        let verdict = if !verdict.admitted {
            Verdict { retry_after: verdict.retry_after.map(|after| left.saturating_add(after)), ..verdict }
        } else if cost == 0 {
            verdict
        } else if can_wait {
            Verdict { wait: left + verdict.wait, ..verdict }
        } else {
            let free_after = || self.verdict(snapshot, at, cost, 0).retry_after.unwrap_or(0);
            // For a queue `retry_after` ends when the slot is within the call's wait.
            let retry_after = match queue {
                Some(_) => (left + verdict.wait).saturating_sub(wait),
                None => left.saturating_add(free_after()),
            };
            let unused = self.verdict(snapshot, at, 0, 0);
            Verdict { admitted: false, retry_after: Some(retry_after), ..unused }
        };
        // A limit that no key reaches is there to tell what a key has used.
        let remaining = if verdict.limit < MAX_PERMITS { 0 } else { verdict.remaining };
        Verdict { remaining, reset_after: left.saturating_add(verdict.reset_after), ..verdict }
    }

    /// Leaves the state of a paused key unchanged, unless it is from the future.
    #[cold]
    pub(super) fn undo_paused(
        paused: &mut PausedState,
        now: u64,
        undo: impl FnOnce(&mut Option<State>, u64) -> bool,
    ) {
        let pause = paused.current(now);
        let is_future = undo(&mut paused.state, pause.time(now));
        if is_future || paused.written > now {
            (paused.pause, paused.written) = (pause, now);
        }
    }

    /// Returns when the state of a paused key expires.
    pub(super) fn ends_paused(&self, paused: &PausedState) -> u64 {
        let ends = paused.state.as_ref().map_or(0, |state| self.ends(state));
        ends.max(paused.pause.ends())
    }

    /// Changes the state of a key as of now or, if it is paused, as of the end of that: charges a call, given what was read, or
    /// anything else. A pause goes once it is over, no penalty matters, and no call waits that knows of it.
    #[inline(always)]
    pub(super) fn change<T>(
        &self,
        state: &mut Option<State>,
        now: u64,
        charged: Option<Snapshot>,
        change: impl FnOnce(&mut Option<State>, u64) -> T,
    ) -> T {
        match state {
            Some(State::Paused(_)) => self.change_paused(state, now, charged, change),
            _ => change(state, now),
        }
    }

    #[cold]
    #[inline(never)]
    fn change_paused<T>(
        &self,
        state: &mut Option<State>,
        now: u64,
        charged: Option<Snapshot>,
        change: impl FnOnce(&mut Option<State>, u64) -> T,
    ) -> T {
        let Some(State::Paused(paused)) = state else { return change(state, now) };
        let paused = Arc::make_mut(paused);
        let mut pause = paused.current(now);
        let changed = change(&mut paused.state, pause.time(now));
        pause.penalty.is_spent &= charged.is_none();
        let is_over = pause.ends() <= now && !(pause.penalty.is_spent && paused.state.is_some());
        if is_over && self.last_slot(paused.state.as_ref(), charged) <= now {
            *state = paused.state.take();
        } else {
            (paused.pause, paused.written) = (pause, now);
        }
        changed
    }

    /// Changes the state of a key as [`change`](Self::change) does, but writes no pause if the state remains as it is.
    pub(super) fn change_some(
        &self,
        state: &mut Option<State>,
        now: u64,
        change: impl FnOnce(&mut Option<State>, u64),
    ) {
        let Some(State::Paused(paused)) = state else { return change(state, now) };
        let mut changed = paused.state.clone();
        change(&mut changed, paused.current(now).time(now));
        if changed != paused.state {
            self.change(state, now, None, |state, _| *state = changed);
        }
    }

    /// Returns the last slot that a call waits for, or slightly later; 0 if there is none. A charge tells it of those whose state does
    /// not.
    fn last_slot(&self, state: Option<&State>, charged: Option<Snapshot>) -> u64 {
        match (state, self) {
            (Some(State::Gcra(bucket)), AlgorithmSpec::Gcra(spec)) if spec.kind == GcraKind::Queue => {
                charged.map_or(bucket.tat, |[slot, ..]| slot)
            }
            (Some(State::Gcra(bucket)), _) => bucket.slot,
            (Some(State::AdjustableGcra(bucket)), _) => bucket.slot,
            (Some(State::SettledGcra(bucket)), _) => bucket.slot,
            (Some(State::IntervalBucket(bucket)), AlgorithmSpec::IntervalBucket(spec)) => {
                spec.last_slot(bucket)
            }
            (Some(State::WarmingUp(bucket)), _) => charged.map_or(bucket.next, |[slot, ..]| slot),
            _ => 0,
        }
    }
}

#[cfg(test)]
mod properties;
