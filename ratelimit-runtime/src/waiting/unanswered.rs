//! A question that Redis did not answer, and what becomes of it.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Answer, ask};
use crate::backend::{Backend, By};
use crate::error::store::StoreError;
use crate::on_store_error::OnStoreError;
use crate::question::Question;
use crate::store::Outcome;

/// Why there is no answer. Where the store is in trouble it brings the question back, for another to answer.
#[derive(Debug)]
pub(crate) struct Unanswered {
    error: StoreError,
    asked: Option<Box<Asked>>,
}

#[derive(Debug)]
struct Asked {
    question: Question,
    /// When a call was made that waits.
    since: Option<Instant>,
    /// Whether it has stood in line.
    in_line: bool,
}

/// What is said of a shadow that takes more than its share here ever has.
const NO_SHARE: &str = "the store does not answer, and the call costs more than the share of this process";

impl Unanswered {
    pub(super) fn new(error: StoreError, question: Question) -> Self {
        Unanswered { error, asked: Some(Box::new(Asked { question, since: None, in_line: false })) }
    }

    /// Of a call that was made then.
    pub(super) fn since(mut self, since: Instant) -> Self {
        self.asked.iter_mut().for_each(|asked| asked.since = Some(since));
        self
    }

    /// Of a call that has stood in line.
    pub(super) fn in_line(mut self) -> Self {
        self.asked.iter_mut().for_each(|asked| asked.in_line = true);
        self
    }

    /// Answers as `on_store_error` says.
    pub(super) async fn otherwise(self, backend: &Arc<Backend>) -> Result<Answer, StoreError> {
        let Unanswered { error, asked: Some(asked) } = self else { return Err(self.error) };
        match asked.question.on_store_error() {
            OnStoreError::Local => asked.locally(backend, error).await,
            OnStoreError::Allow => Ok(Answer::allowed(asked.question)),
            OnStoreError::Deny => Err(error),
        }
    }
}

impl Asked {
    /// Decides in this process, with the patience that is left.
    async fn locally(self, backend: &Arc<Backend>, error: StoreError) -> Result<Answer, StoreError> {
        let Asked { mut question, since, in_line } = self;
        let Some(local) = &backend.local else { return Err(error) };
        // To call it limited would be untrue: by the policy the same call may get in.
        let Some(unshared) = question.divide(local.instances) else { return Err(error) };
        question.spend(since.map_or(Duration::ZERO, |since| since.elapsed()));
        let (_, Some(store)) = backend.decided(By::Local) else { return Err(error) };
        let asked = ask(&mut question, &local.backend, store);
        let mut answer =
            asked.answer(mem::take(&mut question)).await.map_err(|unanswered| unanswered.error)?;
        answer.by = By::Local;
        answer.outcome.failed.extend(unshared.into_iter().map(|place| (place, NO_SHARE.to_owned())));
        // For a window a call waits from when it was made.
        if let Some(since) = since
            && !answer.question.reserves()
            && (in_line || !answer.waited.is_zero())
        {
            answer.waited = since.elapsed();
        }
        Ok(answer)
    }
}

impl Answer {
    /// The call goes ahead, and nothing is charged.
    fn allowed(question: Question) -> Self {
        let verdicts = question.unused();
        let outcome = Outcome { now: 0, admitted: true, verdicts, failed: Vec::new() };
        Answer { by: By::Nobody, ..Answer::at_once(question, outcome) }
    }
}

impl From<StoreError> for Unanswered {
    fn from(error: StoreError) -> Self {
        Unanswered { error, asked: None }
    }
}
