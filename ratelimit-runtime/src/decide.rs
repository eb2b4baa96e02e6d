//! Decides charges on a backend.

use std::sync::Arc;
use std::time::Duration;

use crate::backend::{Backend, By, Pending};
use crate::decision::Decision;
use crate::error::Error;
use crate::error::store::StoreError;
use crate::question::Question;
use crate::store::Store;
use crate::waiting::{self, Answer, Asked};

impl Backend {
    /// Decides the charges, all or nothing, as soon as it can be done in their time. A list that costs nothing passes without
    /// asking.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        charges: impl IntoIterator<Item = Pending>,
    ) -> Result<Decision, Error> {
        let question = self.question(charges)?;
        match &self.store {
            Some(store) if question.costs() => self.ask(question, store).await?.into_result(),
            _ => Ok(question.unasked()),
        }
    }

    /// What a call now would find.
    pub(crate) async fn peek(self: &Arc<Self>, charge: Pending) -> Result<Decision, Error> {
        let question = self.question([charge])?;
        match &self.store {
            Some(store) => Ok(self.ask(question, store).await?),
            None => Ok(question.unasked()),
        }
    }

    async fn ask(self: &Arc<Self>, mut question: Question, store: &Store) -> Result<Decision, StoreError> {
        match waiting::ask(&mut question, self, store) {
            Asked::Here(outcome) => Ok(question.decision(&outcome?, Duration::ZERO, self.decided(By::Store))),
            Asked::Later(asking) => {
                let Answer { question, outcome, waited, by } = waiting::answer(asking, self).await?;
                Ok(question.decision(&outcome, waited, self.decided(by)))
            }
        }
    }
}
