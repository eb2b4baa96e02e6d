//! Calls that wait where nothing can be reserved. Nobody knows their times, so they come in turn: of all that wait for one
//! key in this process only the first asks, and not before there may be room.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Answer, Answered, Asked, Unanswered, ask_once, tell_waited, tell_waiting};
use crate::backend::Backend;
use crate::error::store::StoreError;
use crate::key::Key;
use crate::question::Question;
use crate::store::{Charge, Outcome, Store};
use crate::timer::until;
use crate::turns::{Line, Place};

/// A call that was made with patience.
struct Patient {
    backend: Arc<Backend>,
    store: Store,
    runtime: Handle,
    ticket: u64,
    since: Instant,
}

/// A call in line, which it leaves when this is dropped.
struct InLine<'a> {
    call: &'a Patient,
    key: Key,
    /// The charge for which it waits, by its place.
    place: usize,
    told: Arc<Notify>,
}

/// Asks at once where nobody waits, and else in turn.
pub(super) fn ask(question: &mut Question, backend: &Arc<Backend>, store: &Store, runtime: Handle) -> Asked {
    let since = Instant::now();
    if let Store::Memory(memory) = store
        && backend.turns.waited_for(question).is_none()
    {
        let outcome = memory.decide(question.charges());
        if next_try(question, &outcome, since).is_none() {
            return Asked::Here(Ok(outcome));
        }
    }
    let ticket = backend.turns.tickets.fetch_add(1, Ordering::Relaxed);
    let call = Patient { backend: Arc::clone(backend), store: store.clone(), runtime, ticket, since };
    Asked::Later(Box::pin(call.ask(mem::take(question))))
}

impl Patient {
    async fn ask(self, mut question: Question) -> Answered {
        let Some(_waiting) = self.backend.waiters.enter() else {
            return self.once(question).await.map_err(|error| self.unanswered(error, false));
        };
        let end = self.since + question.patience();
        let mut line = self.join_others(&question, end);
        loop {
            if let Some(line) = &line {
                line.turn(end).await?;
            }
            let answer = match (self.once(question).await, &line) {
                (Err(error), line) => {
                    line.iter().for_each(InLine::let_all_ask);
                    return Err(self.unanswered(error, line.is_some()));
                }
                (Ok(answer), _) => answer,
            };
            let Some((place, wait)) = next_try(&answer.question, &answer.outcome, self.since) else {
                return Ok(match line {
                    Some(line) => answer.after(self.since, line.place),
                    None => answer,
                });
            };
            question = answer.question;
            let charge = &question.charges()[place];
            match &line {
                Some(line) if line.key == charge.key => line.room_in(wait),
                _ => {
                    let Some(new) = InLine::join(&self, charge, place) else {
                        return Ok(Answer::at_once(question, answer.outcome));
                    };
                    new.room_in(wait);
                    if line.replace(new).is_none() {
                        tell_waiting(question.name(place), Some(wait));
                    }
                }
            }
        }
    }

    /// Stands behind those who wait for one of its keys, unless that is in vain as far as is known.
    fn join_others(&self, question: &Question, end: Instant) -> Option<InLine<'_>> {
        let (place, room_at) = self.backend.turns.waited_for(question)?;
        if question.is_vain() || room_at > end {
            return None;
        }
        let line = InLine::join(self, &question.charges()[place], place)?;
        tell_waiting(question.name(place), None);
        if matches!(self.store, Store::Memory(_)) {
            // To ask costs nothing here, and something may have been given back.
            line.room_in(Duration::ZERO);
        }
        Some(line)
    }

    async fn once(&self, mut question: Question) -> Answered {
        let asked = ask_once(&mut question, &self.backend, &self.store);
        asked.answer(question).await
    }

    /// With the time that the call was made, and whether it has stood in line.
    #[cfg(feature = "redis")]
    fn unanswered(&self, unanswered: Unanswered, in_line: bool) -> Unanswered {
        let unanswered = unanswered.since(self.since);
        if in_line { unanswered.in_line() } else { unanswered }
    }

    #[cfg(not(feature = "redis"))]
    fn unanswered(&self, error: Unanswered, _in_line: bool) -> Unanswered {
        error
    }
}

impl<'a> InLine<'a> {
    /// Stands in line, if it is not that of a queue which is full.
    fn join(call: &'a Patient, charge: &Charge, at: usize) -> Option<Self> {
        let mut lines = call.backend.turns.lines();
        let new = || Line { waiting: BTreeMap::new(), room_at: Instant::now(), all: false };
        let line = lines.entry(charge.key.clone()).or_insert_with(new);
        let waiting: u64 = line.waiting.values().map(|place| place.cost).sum();
        let is_full = charge.spec.waiting_room().is_some_and(|room| waiting + charge.cost > room);
        if is_full && !line.waiting.is_empty() {
            return None;
        }
        let place = Place { cost: charge.cost, ..Place::default() };
        let told = Arc::clone(&place.told);
        line.waiting.insert(call.ticket, place);
        Some(InLine { call, key: charge.key.clone(), place: at, told })
    }

    /// Returns when its turn has come, or the patience of the call ends.
    async fn turn(&self, end: Instant) -> Result<(), StoreError> {
        loop {
            let (now, ticket) = (Instant::now(), self.call.ticket);
            let turn_at = self.line(|line| line.turn(ticket, now)).flatten();
            match turn_at.map(|at| at.min(end)).filter(|at| *at > now) {
                // Whichever comes first, it looks again.
                Some(at) => drop(until(&self.call.runtime, at, self.told.notified()).await?),
                None => return Ok(()),
            }
        }
    }

    /// Nobody asks before. The first in line knows.
    fn room_in(&self, wait: Duration) {
        let first = self.line(|line| {
            if line.before(self.call.ticket) == 0 || wait.is_zero() {
                line.room_at = Instant::now() + wait;
                line.all = false;
            }
            line.first()
        });
        if wait.is_zero() {
            first.flatten().iter().for_each(|first| first.notify_one());
        }
    }

    /// Where the store does not answer, nobody waits for the others' answers.
    fn let_all_ask(&self) {
        let told = self.line(|line| {
            line.all = true;
            line.waiting.values().map(|place| Arc::clone(&place.told)).collect::<Vec<_>>()
        });
        told.into_iter().flatten().for_each(|told| told.notify_one());
    }

    fn line<T>(&self, look: impl FnOnce(&mut Line) -> T) -> Option<T> {
        self.call.backend.turns.lines().get_mut(&self.key).map(look)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut lines = self.call.backend.turns.lines();
        let Some(line) = lines.get_mut(&self.key) else { return };
        if line.before(self.call.ticket) == 0 {
            // What there is no room for yet may be more than the next one asks for.
            line.room_at = Instant::now();
        }
        line.waiting.remove(&self.call.ticket);
        let next = line.first();
        if line.waiting.is_empty() {
            lines.remove(&self.key);
        }
        drop(lines);
        next.iter().for_each(|next| next.notify_one());
    }
}

/// The charge that refuses the longest, by its place, and how long until it may be worth to ask again, if the call still has
/// the patience.
fn next_try(question: &Question, outcome: &Outcome, since: Instant) -> Option<(usize, Duration)> {
    let (place, wait) = question.next_try(outcome, since.elapsed().as_micros() as u64)?;
    Some((place, Duration::from_micros(wait)))
}

impl Answer {
    /// Of a call that has waited for this charge.
    fn after(mut self, since: Instant, place: usize) -> Self {
        self.waited = since.elapsed();
        tell_waited(self.question.name(place), self.waited);
        self
    }
}
