//! Asks the store, and waits where a policy refuses for now and the call has the patience.
//!
//! Buckets reserve: they take permits that are yet to come, and tell how long that is. With a window among the policies nothing
//! is reserved, and the call asks again when there may be room.

#[cfg(feature = "redis")]
mod kept;
mod reserved;
#[cfg(test)]
mod tests;
mod turns;
#[cfg(feature = "redis")]
mod unanswered;

use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Handle;
#[cfg(feature = "redis")]
use tokio::time::Instant;

#[cfg(feature = "redis")]
use self::kept::Kept;
use self::reserved::Reserved;
#[cfg(feature = "redis")]
use self::unanswered::Unanswered;
use crate::backend::{Backend, By};
use crate::error::store::StoreError;
use crate::question::Question;
use crate::store::{Outcome, Receipt, Store};

/// What was asked, and what came of it.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) question: Question,
    pub(crate) outcome: Outcome,
    pub(crate) waited: Duration,
    pub(crate) by: By,
}

type Answered = Result<Answer, Unanswered>;

#[cfg(not(feature = "redis"))]
type Unanswered = StoreError;

type Asking = Pin<Box<dyn Future<Output = Answered> + Send>>;

/// What came of a question, or the future that has taken it.
#[expect(clippy::large_enum_variant, reason = "an outcome that is here is worth no allocation")]
pub(crate) enum Asked {
    Here(Result<Outcome, StoreError>),
    Later(Asking),
}

/// The answer to a question that was asked, of the store or of what stands in for it.
pub(crate) async fn answer(asking: Asking, backend: &Arc<Backend>) -> Result<Answer, StoreError> {
    match asking.await {
        Ok(answer) => Ok(answer),
        #[cfg(feature = "redis")]
        Err(unanswered) => Box::pin(unanswered.otherwise(backend)).await,
        #[cfg(not(feature = "redis"))]
        Err(error) => {
            let _ = backend;
            Err(error)
        }
    }
}

/// Asks. In this process the outcome is here at once unless the call has to wait.
///
/// A future that is dropped before it is done gives back what it was charged.
pub(crate) fn ask(question: &mut Question, backend: &Arc<Backend>, store: &Store) -> Asked {
    if !question.is_patient() {
        return ask_once(question, backend, store);
    }
    let Ok(runtime) = Handle::try_current() else { return ask_without_runtime(question, backend, store) };
    if !question.reserves() {
        question.reserve_nothing();
        return turns::ask(question, backend, store, runtime);
    }
    match store {
        Store::Memory(memory) => {
            // Most calls do not wait, and those that do not are not counted.
            question.reserve_nothing();
            let outcome = memory.decide(question.charges());
            let waiting = if outcome.admitted { None } else { backend.waiters.enter() };
            if waiting.is_none() {
                return Asked::Here(Ok(outcome));
            }
            question.reserve();
            let (outcome, waiter) = memory.reserve(question.charges());
            let Some(waiter) = waiter else { return Asked::Here(Ok(outcome)) };
            let answer = Answer::at_once(mem::take(question), outcome);
            let reserved = Reserved::here(answer, memory, waiter, runtime);
            Asked::Later(Box::pin(async move {
                let _waiting = waiting;
                reserved.start().await
            }))
        }
        #[cfg(feature = "redis")]
        Store::Redis(_) => {
            let (since, waiting) = (Instant::now(), backend.waiters.enter());
            if waiting.is_none() {
                question.reserve_nothing();
            }
            let (asking, store) = (Kept::new(mem::take(question), backend, store), store.clone());
            Asked::Later(Box::pin(async move {
                let _waiting = waiting;
                let answer = asking.await.map_err(|unanswered| unanswered.since(since))?;
                match answer.outcome.wait() {
                    0 => Ok(answer),
                    _ => Reserved::there(answer, &store, runtime).start().await,
                }
            }))
        }
    }
}

impl Asked {
    /// The answer to the question, if that is still here.
    async fn answer(self, question: Question) -> Answered {
        match self {
            Asked::Here(outcome) => Ok(Answer::at_once(question, outcome?)),
            Asked::Later(asking) => asking.await,
        }
    }
}

/// Asks, and waits for nothing but the answer.
fn ask_once(question: &mut Question, backend: &Arc<Backend>, store: &Store) -> Asked {
    #[cfg(not(feature = "redis"))]
    let _ = backend;
    match store {
        Store::Memory(memory) => Asked::Here(Ok(memory.decide(question.charges()))),
        #[cfg(feature = "redis")]
        Store::Redis(_) => Asked::Later(Box::pin(Kept::new(mem::take(question), backend, store))),
    }
}

/// Nobody can wait here. That is no refusal by the policy.
fn ask_without_runtime(question: &mut Question, backend: &Arc<Backend>, store: &Store) -> Asked {
    question.reserve_nothing();
    match ask_once(question, backend, store) {
        Asked::Here(Ok(outcome)) if question.next_try(&outcome, 0).is_some() => Asked::Here(Err(
            StoreError::permanent("a call has to wait, and there is no tokio runtime to wait on"),
        )),
        asked => asked,
    }
}

impl Answer {
    fn at_once(question: Question, outcome: Outcome) -> Self {
        Answer { question, outcome, waited: Duration::ZERO, by: By::Store }
    }

    /// What gives back all that was charged.
    fn receipt(&self, store: &Store) -> Receipt {
        self.question.receipt_of_all(&self.outcome, store)
    }
}

/// Tells that a call begins to wait, and how long if that is known.
fn tell_waiting(policy: &str, wait: Option<Duration>) {
    tracing::debug!(policy, wait = wait.map(tracing::field::debug), "a call waits for its turn");
}

fn tell_waited(policy: &str, waited: Duration) {
    tracing::debug!(policy, ?waited, "a call has waited for its turn");
}
