//! Where limiters keep their state, and how a list of charges is decided there.

use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::Rule;
use crate::decision::Decision;
use crate::error::{Error, MissingKey, StoreError};
use crate::key::{Head, Key, KeyForm, KeyWriter};
use crate::name::Name;
use crate::question::{Question, patience};
use crate::store::{Charge, Store};
use crate::waiting::{self, Answer, Asked, Turns, Waiters};

/// A store, and the namespace of its keys.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    /// None where limits are turned off.
    pub(crate) store: Option<Store>,
    pub(crate) waiters: Arc<Waiters>,
    pub(crate) turns: Turns,
}

/// A charge with the name of its policy, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Pending {
    pub(crate) name: Name,
    pub(crate) key: Result<Key, MissingKey>,
    pub(crate) rule: Rule,
    pub(crate) cost: u64,
    /// How long it waits for its permits.
    pub(crate) timeout: Duration,
}

impl Backend {
    /// A key to be written in the form of this store.
    pub(crate) fn key(&self) -> KeyWriter {
        KeyWriter::new(self.store.as_ref().map_or(KeyForm::Text, Store::key_form))
    }

    /// The key of a policy on this store, once its parts are written.
    pub(crate) fn finish(
        &self,
        key: KeyWriter,
        (prefix, name, function): (&str, &Name, Option<&str>),
        rule: &Rule,
    ) -> Result<Key, MissingKey> {
        let function = function.as_ref().map(|function| function as &dyn Display);
        key.finish(&Head { namespace: &self.namespace, prefix, name, shape: rule, function })
    }

    /// Decides the charges, all or nothing, as soon as it can be done in their time. A list that costs nothing passes without
    /// asking.
    pub(crate) async fn decide(
        self: &Arc<Self>,
        charges: impl IntoIterator<Item = Pending>,
    ) -> Result<Decision, Error> {
        let question = question(charges)?;
        match &self.store {
            Some(store) if question.costs() => self.ask(question, store).await?.into_result(),
            _ => Ok(question.unasked()),
        }
    }

    /// Gives permits back to what the key of the charge holds.
    pub(crate) async fn refund(&self, charge: Pending) -> Result<(), Error> {
        let Pending { key, rule, cost, .. } = charge;
        match &self.store {
            Some(store) => Ok(store.refund(&key?, &rule, cost, None).await?),
            None => Ok(()),
        }
    }

    /// Forgets what the key of the charge holds.
    pub(crate) async fn reset(&self, charge: Pending) -> Result<(), Error> {
        match &self.store {
            Some(store) => Ok(store.reset(&charge.key?).await?),
            None => Ok(()),
        }
    }

    /// What a call now would find.
    pub(crate) async fn peek(self: &Arc<Self>, charge: Pending) -> Result<Decision, Error> {
        let question = question([charge])?;
        match &self.store {
            Some(store) => Ok(self.ask(question, store).await?),
            None => Ok(question.unasked()),
        }
    }

    async fn ask(self: &Arc<Self>, mut question: Question, store: &Store) -> Result<Decision, StoreError> {
        match waiting::ask(&mut question, self, store) {
            Asked::Here(outcome) => Ok(question.decision(&outcome?, Duration::ZERO, store)),
            Asked::Later(asking) => {
                let Answer { question, outcome, waited } = asking.await?;
                Ok(question.decision(&outcome, waited, store))
            }
        }
    }
}

fn question(charges: impl IntoIterator<Item = Pending>) -> Result<Question, Error> {
    let mut question = Question::default();
    for Pending { name, key, rule, cost, timeout } in charges {
        question.push(name, Charge { key: key?, rule, cost, wait: patience(timeout), shadow: false })?;
    }
    Ok(question)
}
