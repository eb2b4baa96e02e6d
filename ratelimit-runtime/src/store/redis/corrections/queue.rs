//! The corrections that wait for a task, and which of them share the next call.

use std::collections::VecDeque;
use std::fmt;
use std::mem;
use std::sync::Arc;

use crate::key::Fingerprint;
use crate::store::correction::{Corrected, Correction, CorrectionKind, OnCorrected, Urgency};
use crate::store::denials::Denials;
use crate::store::error::StoreError;
use crate::store::redis::client::Client;
use crate::store::redis::cluster::common_slot;
use crate::store::redis::scripts::{MAX_WEIGHT, key_text, weight};

/// The tasks that send what waits, unless that is much. Few of these corrections are sent together, but each at once.
const USUAL_SENDERS: usize = 8;

/// The same for those that are sent soon: what comes while one is under way is sent together.
const SENDERS_SOON: usize = 1;

/// Of how many calls a task gathers the corrections. There are more of them only if Redis responds slowly.
const MOST_GATHERED: usize = 12_000;

#[derive(Debug, Default)]
pub(super) struct Queue {
    /// How many tasks send what waits.
    senders: usize,
    waiting: VecDeque<CallCorrections>,
    /// That of all that wait.
    weight: usize,
    /// How many tasks send what is gathered.
    gatherers: usize,
    gathered: Vec<CallCorrections>,
    /// What was gathered, and is sent now.
    due: VecDeque<CallCorrections>,
}

/// What a task sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Task {
    Waiting,
    Gathered,
}

/// The corrections of one call, which have failed if this is dropped before Redis responds.
pub(super) struct CallCorrections {
    pub(super) corrections: Vec<Correction>,
    urgency: Urgency,
    denials: Option<Arc<Denials>>,
    /// `None` once it has been called.
    done: Option<OnCorrected>,
}

impl Queue {
    /// Adds the corrections of a call. Returns what another task is to send, and counts it.
    pub(super) fn push(&mut self, call: CallCorrections) -> Option<Task> {
        let usual_senders = match call.urgency {
            Urgency::AtOnce => USUAL_SENDERS,
            Urgency::Soon => SENDERS_SOON,
            Urgency::Gathered => {
                self.gathered.push(call);
                let is_needed = self.gathered.len() > self.gatherers * MOST_GATHERED;
                self.gatherers += usize::from(is_needed);
                return is_needed.then_some(Task::Gathered);
            }
        };
        // What waits for a key goes before its pause, after which a receipt is worth nothing.
        let mut calls = if call.pauses() { self.take_related(&call) } else { Vec::new() };
        calls.push(call);
        self.weight += calls.iter().map(|call| call.weight(false)).sum::<usize>();
        self.waiting.extend(calls);
        let is_needed = self.senders < usual_senders || self.weight >= MAX_WEIGHT;
        self.senders += usize::from(is_needed);
        is_needed.then_some(Task::Waiting)
    }

    /// Takes the corrections of the next call to Redis.
    pub(super) fn take(&mut self, task: Task) -> Vec<CallCorrections> {
        let from = match task {
            Task::Waiting => &mut self.waiting,
            Task::Gathered => {
                if self.due.is_empty() {
                    // The script reads and writes a key once for all that follow each other. Receipts come first, so that debts follow
                    // each other and are sent as one.
                    self.gathered.sort_by_key(|call| (call.first_key(), call.is_debit()));
                    self.due.extend(self.gathered.drain(..));
                }
                &mut self.due
            }
        };
        let (mut batch, mut weight) = (Vec::<CallCorrections>::new(), 0);
        while let Some(call) = from.front() {
            weight += call.weight_after(batch.last());
            // A key is read and written once more for settlements that are left, so some more of them come along.
            let comes_along = task == Task::Gathered && call.follows(batch.last());
            let most = if comes_along { 2 * MAX_WEIGHT } else { MAX_WEIGHT };
            if weight > most && !batch.is_empty() {
                break;
            }
            batch.extend(from.pop_front());
        }
        if task == Task::Waiting {
            self.weight -= batch.iter().map(|call| call.weight(false)).sum::<usize>();
        }
        batch
    }

    /// Whether some of what was gathered has not been sent yet.
    pub(super) fn has_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// Counts a task no longer. Returns whether there is no other.
    pub(super) fn end(&mut self, task: Task) -> bool {
        match task {
            Task::Waiting => self.senders -= 1,
            Task::Gathered => self.gatherers -= 1,
        }
        self.senders == 0 && self.gatherers == 0
    }

    /// Returns all that has no task any more.
    pub(super) fn into_calls(self) -> impl Iterator<Item = CallCorrections> {
        self.due.into_iter().chain(self.gathered).chain(self.waiting)
    }

    /// Takes what is gathered of the keys of a call.
    fn take_related(&mut self, call: &CallCorrections) -> Vec<CallCorrections> {
        let is_related = |other: &CallCorrections| other.keys().any(|key| call.keys().any(|own| own == key));
        if !self.due.iter().chain(&self.gathered).any(is_related) {
            return Vec::new();
        }
        let (mut related, others) = mem::take(&mut self.due).into_iter().partition::<Vec<_>, _>(is_related);
        self.due = others.into();
        related.extend(self.gathered.extract_if(.., |other| is_related(other)));
        related
    }
}

impl CallCorrections {
    pub(super) fn new(
        corrections: Vec<Correction>,
        urgency: Urgency,
        denials: Option<Arc<Denials>>,
        done: OnCorrected,
    ) -> Self {
        let call = CallCorrections { corrections, urgency, denials, done: Some(done) };
        // What is refused from now on may be out of date, and what was.
        call.forget_denials();
        call
    }

    /// Makes them wait for no others.
    pub(super) fn hurry(&mut self) {
        self.urgency = Urgency::Soon;
    }

    /// Returns the slot of the keys, if it matters.
    pub(super) fn slot(&self, client: &Client) -> Result<Option<u16>, StoreError> {
        let keys = self
            .corrections
            .iter()
            .map(|correction| key_text(&correction.key))
            .collect::<Result<Vec<_>, _>>()?;
        client.has_slots().then(|| common_slot(&keys)).transpose()
    }

    pub(super) fn is_at_once(&self) -> bool {
        self.urgency == Urgency::AtOnce
    }

    pub(super) fn end(mut self, result: Result<Corrected, StoreError>) {
        self.finish(result);
    }

    fn first_key(&self) -> Option<Fingerprint> {
        self.keys().next()
    }

    fn keys(&self) -> impl Iterator<Item = Fingerprint> {
        self.corrections.iter().map(|correction| correction.key.fingerprint())
    }

    fn is_debit(&self) -> bool {
        self.corrections.first().is_some_and(|first| matches!(first.kind, CorrectionKind::Debit))
    }

    fn pauses(&self) -> bool {
        let is_pause =
            |kind: CorrectionKind| matches!(kind, CorrectionKind::Pause | CorrectionKind::Penalty(_));
        self.corrections.iter().any(|correction| is_pause(correction.kind))
    }

    /// What it adds to a call to Redis that makes those of another call before. What is sent as a part of their sum weighs nothing.
    fn weight_after(&self, before: Option<&CallCorrections>) -> usize {
        let last = before.and_then(|before| before.corrections.last());
        match (&*self.corrections, last) {
            ([only], Some(last)) if only.adds_to(last) => 0,
            _ => self.weight(self.follows(before)),
        }
    }

    /// Whether it has only one correction, of the key of the last one of another call.
    fn follows(&self, before: Option<&CallCorrections>) -> bool {
        let last = before.and_then(|before| before.corrections.last());
        matches!((&*self.corrections, last), ([only], Some(last)) if only.key == last.key)
    }

    fn weight(&self, is_repeated: bool) -> usize {
        self.corrections.iter().map(|correction| weight(correction, is_repeated)).sum()
    }

    fn finish(&mut self, result: Result<Corrected, StoreError>) {
        let Some(done) = self.done.take() else { return };
        self.forget_denials();
        done(result);
    }

    fn forget_denials(&self) {
        if let Some(denials) = &self.denials {
            // A debt lets no call through, and a denial is not remembered for long.
            let changes = self.corrections.iter().filter(|it| !matches!(it.kind, CorrectionKind::Debit));
            changes.for_each(|change| drop(denials.forget_after(&change.key)));
        }
    }
}

impl Drop for CallCorrections {
    fn drop(&mut self) {
        self.finish(Err(StoreError::transient("the tokio runtime shut down before Redis responded")));
    }
}

/// Without keys.
impl fmt::Debug for CallCorrections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallCorrections")
            .field("corrections", &self.corrections.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
