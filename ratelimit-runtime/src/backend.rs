//! Where limiters keep their state, and how a list of charges is decided there.

use std::fmt::Display;
use std::time::Duration;

use crate::algorithm::{Rule, Verdict};
use crate::decision::{Decision, PolicyDecision, Source};
use crate::error::{Error, InvalidPolicy, MissingKey, StoreError};
use crate::key::{Head, Key, KeyForm, KeyWriter};
use crate::name::Name;
use crate::store::{Charge, Outcome, Receipt, Store};

/// A store, and the namespace of its keys.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) namespace: String,
    /// None where limits are turned off.
    pub(crate) store: Option<Store>,
}

/// A charge with the name of its policy, or the reason why there is none.
#[derive(Debug)]
pub(crate) struct Pending {
    name: Name,
    key: Result<Key, MissingKey>,
    rule: Rule,
    cost: u64,
}

impl Backend {
    /// A key to be written in the form of this store.
    pub(crate) fn key(&self) -> KeyWriter {
        KeyWriter::new(self.store.as_ref().map_or(KeyForm::Text, Store::key_form))
    }

    /// The charge of a policy on this store, once the parts of its key are written.
    pub(crate) fn charge(
        &self,
        key: KeyWriter,
        (prefix, name, function): (&str, Name, Option<&str>),
        rule: Rule,
        cost: u64,
    ) -> Pending {
        let function = function.as_ref().map(|function| function as &dyn Display);
        let head = Head { namespace: &self.namespace, prefix, name: &name, shape: &rule, function };
        let key = key.finish(&head);
        Pending { name, key, rule, cost }
    }

    /// Decides the charges, all or nothing. A list that costs nothing passes without asking.
    pub(crate) async fn decide(&self, charges: Vec<Pending>) -> Result<Decision, Error> {
        match &self.store {
            Some(store) if costs(&charges) => Question::new(charges)?.ask(store).await?.into_result(),
            _ => Ok(unasked(&charges)),
        }
    }

    /// The same where nothing has to be awaited. Elsewhere the charges come back.
    pub(crate) fn decide_now(&self, charges: Vec<Pending>) -> Result<Result<(), Error>, Vec<Pending>> {
        match &self.store {
            Some(_) if !costs(&charges) => Ok(Ok(())),
            None => Ok(Ok(())),
            #[cfg(feature = "redis")]
            Some(Store::Redis(_)) => Err(charges),
            Some(store @ Store::Memory(memory)) => Ok(Question::new(charges).and_then(|question| {
                let outcome = memory.decide(&question.charges);
                if outcome.admitted {
                    return Ok(());
                }
                question.answer(store, outcome).into_result().map(drop)
            })),
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
    pub(crate) async fn peek(&self, charge: Pending) -> Result<Decision, Error> {
        match &self.store {
            Some(store) => Question::new(vec![charge])?.ask(store).await,
            None => Ok(unasked(&[charge])),
        }
    }
}

/// Charges of distinct keys, as stores want them. Those of one key are one charge of their sum.
struct Question {
    charges: Vec<Charge>,
    /// The names of the policies, each with the place of its charge.
    policies: Vec<(Name, usize)>,
}

impl Question {
    fn new(pending: Vec<Pending>) -> Result<Self, Error> {
        let mut charges: Vec<Charge> = Vec::with_capacity(pending.len());
        let mut policies = Vec::with_capacity(pending.len());
        for Pending { name, key, rule, cost } in pending {
            let key = key?;
            let place = charges.iter().position(|charge| charge.key == key);
            let place = place.unwrap_or(charges.len());
            policies.push((name, place));
            match charges.get_mut(place) {
                None => charges.push(Charge { key, rule, cost, shadow: false }),
                Some(twin) if twin.rule == rule => twin.cost = twin.cost.saturating_add(cost),
                Some(_) => {
                    return Err(InvalidPolicy::new(
                        "limit",
                        "is two different numbers for one name and key in one decision; give the policies different names",
                    )
                    .into());
                }
            }
        }
        Ok(Question { charges, policies })
    }

    async fn ask(self, store: &Store) -> Result<Decision, Error> {
        let outcome = store.decide(&[&self.charges]).await.pop();
        let outcome = outcome.unwrap_or_else(|| Err(StoreError::new("the store gave no answer")))?;
        Ok(self.answer(store, outcome))
    }

    fn answer(self, store: &Store, outcome: Outcome) -> Decision {
        let told = |(name, place): &(Name, usize)| told(name, &outcome.verdicts[*place]);
        let policies = self.policies.iter().map(told).collect();
        let receipt = outcome.admitted.then(|| Receipt::new(store.clone(), self.charges, &outcome));
        Decision::new(policies, store.source(), receipt)
    }
}

fn costs(charges: &[Pending]) -> bool {
    charges.iter().any(|charge| charge.cost > 0)
}

/// What policies that nobody has used would say.
fn unasked(charges: &[Pending]) -> Decision {
    let policies = charges.iter().map(|Pending { name, rule, .. }| {
        let unused = rule.check(None, 0, 0);
        told(name, &rule.verdict(unused, 0, 0))
    });
    Decision::new(policies.collect(), Source::Unasked, None)
}

fn told(policy: &Name, verdict: &Verdict) -> PolicyDecision {
    PolicyDecision {
        policy: policy.to_shared(),
        admitted: verdict.admitted,
        limit: verdict.limit,
        remaining: verdict.remaining,
        retry_after: verdict.retry_after.map(Duration::from_micros),
        reset_after: Duration::from_micros(verdict.reset_after),
    }
}
