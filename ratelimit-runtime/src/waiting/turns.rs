//! Calls that wait for a window. Nobody knows their times, so they come in turn: of all that wait for one window in this
//! process only the first asks, and not before there may be room.

use std::collections::{BTreeMap, HashMap};
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::Notify;
use tokio::time::Instant;

use super::{Answer, Answered, Asked, ask_once, tell_waiting, timer, until_timer};
use crate::backend::Backend;
use crate::error::StoreError;
use crate::key::Key;
use crate::question::Question;
use crate::store::{Outcome, Store};

/// The windows that somebody waits for.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    lines: Mutex<HashMap<Key, Line>>,
    tickets: AtomicU64,
}

/// Those who wait for one window.
#[derive(Debug, Default)]
struct Line {
    /// By the order in which they came, which need not be that in which they were refused.
    waiting: BTreeMap<u64, Arc<Notify>>,
    /// When there may be room again, as far as is known.
    room_at: Option<Instant>,
}

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
    /// Told when it may be the first.
    told: Arc<Notify>,
}

/// Asks at once where nobody waits, and else in turn.
pub(super) fn ask(question: &mut Question, backend: &Arc<Backend>, store: &Store, runtime: Handle) -> Asked {
    let since = Instant::now();
    if let Store::Memory(memory) = store
        && backend.turns.nobody_waits(question.turn())
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
        let mut wait = None;
        let waiting = self.backend.waiters.enter();
        if waiting.is_none() || self.backend.turns.nobody_waits(question.turn()) || self.in_vain(&question) {
            let answer = self.once(question).await?;
            wait = next_try(&answer.question, &answer.outcome, self.since);
            if wait.is_none() || waiting.is_none() {
                return Ok(answer);
            }
            question = answer.question;
        }
        tell_waiting(question.turns_policy(), wait);
        let line = InLine::join(&self, question.turn(), wait);
        loop {
            line.turn(self.since + question.patience()).await?;
            let answer = self.once(question).await?;
            match next_try(&answer.question, &answer.outcome, self.since) {
                None => return Ok(answer.after(self.since)),
                Some(wait) => line.room_in(wait),
            }
            question = answer.question;
        }
    }

    async fn once(&self, mut question: Question) -> Answered {
        let asked = ask_once(&mut question, &self.store);
        asked.answer(question).await
    }

    /// Whether there is no room in the call's time, as far as is known.
    fn in_vain(&self, question: &Question) -> bool {
        if question.is_vain() {
            return true;
        }
        let lines = self.backend.turns.lines();
        let room_at = lines.get(question.turn()).and_then(|line| line.room_at);
        room_at.is_some_and(|room_at| room_at > self.since + question.patience())
    }
}

impl<'a> InLine<'a> {
    /// Stands in line, and if it is the first knows when there may be room.
    fn join(call: &'a Patient, key: &Key, wait: Option<Duration>) -> Self {
        let told = Arc::new(Notify::new());
        let mut lines = call.backend.turns.lines();
        lines.entry(key.clone()).or_default().waiting.insert(call.ticket, Arc::clone(&told));
        drop(lines);
        let line = InLine { call, key: key.clone(), told };
        if let Some(wait) = wait.filter(|_| line.is_first()) {
            line.room_in(wait);
        }
        line
    }

    /// Returns when it is the first and there may be room, or the patience of the call ends.
    async fn turn(&self, until: Instant) -> Result<(), StoreError> {
        loop {
            let now = Instant::now();
            let at = if self.is_first() { self.room_at().unwrap_or(now).min(until) } else { until };
            if at <= now {
                return Ok(());
            }
            // Whichever comes first, it looks again.
            until_timer(timer(&self.call.runtime, at)?, self.told.notified()).await;
        }
    }

    fn is_first(&self) -> bool {
        self.line(|line| line.is_first(self.call.ticket)).unwrap_or(true)
    }

    fn room_at(&self) -> Option<Instant> {
        self.line(|line| line.room_at).flatten()
    }

    fn room_in(&self, wait: Duration) {
        self.line(|line| line.room_at = Some(Instant::now() + wait));
    }

    fn line<T>(&self, look: impl FnOnce(&mut Line) -> T) -> Option<T> {
        self.call.backend.turns.lines().get_mut(&self.key).map(look)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        let mut lines = self.call.backend.turns.lines();
        let Some(line) = lines.get_mut(&self.key) else { return };
        if line.is_first(self.call.ticket) {
            // What there is no room for yet may be more than the next one asks for.
            line.room_at = None;
        }
        line.waiting.remove(&self.call.ticket);
        let next = line.waiting.values().next().map(Arc::clone);
        if next.is_none() {
            lines.remove(&self.key);
        }
        drop(lines);
        next.iter().for_each(|next| next.notify_one());
    }
}

impl Line {
    fn is_first(&self, ticket: u64) -> bool {
        self.waiting.keys().next() == Some(&ticket)
    }
}

impl Turns {
    fn nobody_waits(&self, key: &Key) -> bool {
        !self.lines().contains_key(key)
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.lines().is_empty()
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<Key, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How long until it may be worth to ask again, if the call still has the patience.
fn next_try(question: &Question, outcome: &Outcome, since: Instant) -> Option<Duration> {
    let wait = question.next_try(outcome, since.elapsed().as_micros() as u64)?;
    Some(Duration::from_micros(wait))
}

impl Answer {
    fn after(mut self, since: Instant) -> Self {
        self.waited = since.elapsed();
        self.tell_waited();
        self
    }
}
