//! Calls that wait for a window. Nobody knows their times, so they come one after another: of all that wait for one window in
//! this process only the first asks, and not before there may be room.

use std::collections::HashMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex as Turn, OwnedMutexGuard};
use tokio::time::Instant;

use super::{Answer, Answered, Asked, Waiting, ask_once, tell_waiting, timer, until_timer};
use crate::backend::Backend;
use crate::key::Key;
use crate::question::Question;
use crate::store::{Outcome, Store};

/// The windows that somebody asks for with patience, and how many do.
#[derive(Debug, Default)]
pub(crate) struct Turns(Mutex<HashMap<Key, (Arc<Line>, usize)>>);

#[derive(Debug, Default)]
struct Line {
    /// Whoever holds it asks. It goes to those who want it in their order.
    turn: Arc<Turn<()>>,
    /// When there may be room again, as far as is known.
    room_at: Mutex<Option<Instant>>,
}

/// A call at a line, which is gone with the last one.
struct AtLine {
    backend: Arc<Backend>,
    key: Key,
    line: Arc<Line>,
    runtime: Handle,
}

/// The first in a line.
struct First {
    /// Passed on before the line may be forgotten.
    _turn: OwnedMutexGuard<()>,
    at: AtLine,
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
    let at = AtLine::join(backend, question.turn(), runtime);
    let (question, store) = (mem::take(question), store.clone());
    Asked::Later(match Arc::clone(&at.line.turn).try_lock_owned() {
        Ok(turn) => Box::pin(First { _turn: turn, at }.ask(question, store, since, None)),
        Err(_) => Box::pin(at.wait_for_turn(question, store, since)),
    })
}

impl AtLine {
    fn join(backend: &Arc<Backend>, key: &Key, runtime: Handle) -> Self {
        let mut lines = backend.turns.lines();
        let (line, calls) = lines.entry(key.clone()).or_default();
        *calls += 1;
        AtLine { backend: Arc::clone(backend), key: key.clone(), line: Arc::clone(line), runtime }
    }

    async fn wait_for_turn(self, question: Question, store: Store, since: Instant) -> Answered {
        let until = since + question.patience();
        let in_time = self.line.room_at().is_none_or(|room_at| room_at <= until);
        let waiting = if question.is_vain() || !in_time { None } else { self.backend.waiters.enter() };
        if waiting.is_none() {
            return once(question, &store).await;
        }
        tell_waiting(question.turns_policy(), None);
        let turn = until_timer(timer(&self.runtime, until)?, Arc::clone(&self.line.turn).lock_owned()).await;
        match turn {
            Some(turn) => First { _turn: turn, at: self }.ask(question, store, since, waiting).await,
            // Out of patience, it is told what a call is that does not wait.
            None => once(question, &store).await.map(|answer| answer.after(since)),
        }
    }
}

impl First {
    async fn ask(
        self,
        mut question: Question,
        store: Store,
        since: Instant,
        mut waiting: Option<Waiting>,
    ) -> Answered {
        loop {
            let answer = once(question, &store).await?;
            let Some(wait) = next_try(&answer.question, &answer.outcome, since) else {
                return Ok(if waiting.is_some() { answer.after(since) } else { answer });
            };
            if waiting.is_none() {
                waiting = self.at.backend.waiters.enter();
                if waiting.is_none() {
                    return Ok(answer);
                }
                tell_waiting(answer.question.slowest(&answer.outcome), Some(wait));
            }
            let room_at = Instant::now() + wait;
            *self.at.line.room_at() = Some(room_at);
            timer(&self.at.runtime, room_at)?.await;
            question = answer.question;
        }
    }
}

async fn once(mut question: Question, store: &Store) -> Answered {
    let asked = ask_once(&mut question, store);
    asked.answer(question).await
}

/// How long until it may be worth to ask again, if the call still has the patience.
fn next_try(question: &Question, outcome: &Outcome, since: Instant) -> Option<Duration> {
    let wait = question.next_try(outcome, since.elapsed().as_micros() as u64)?;
    Some(Duration::from_micros(wait))
}

impl Drop for AtLine {
    fn drop(&mut self) {
        let mut lines = self.backend.turns.lines();
        if let Some((_, calls)) = lines.get_mut(&self.key) {
            *calls -= 1;
            if *calls == 0 {
                lines.remove(&self.key);
            }
        }
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

    fn lines(&self) -> MutexGuard<'_, HashMap<Key, (Arc<Line>, usize)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Line {
    fn room_at(&self) -> MutexGuard<'_, Option<Instant>> {
        self.room_at.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Answer {
    fn after(mut self, since: Instant) -> Self {
        self.waited = since.elapsed();
        self.tell_waited();
        self
    }
}
