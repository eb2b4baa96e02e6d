//! What a store is asked: charges of distinct keys, as stores want them, and the policies that they are for.

use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::{Rule, Verdict};
use crate::decision::{Decision, PolicyDecision, Source};
use crate::error::{InvalidPolicy, StoreError};
use crate::name::Name;
use crate::store::{Charge, INLINE, MemoryStore, Outcome, Receipt, Store, Verdicts};

/// A list of charges to be decided together.
#[derive(Debug, Default)]
pub(crate) struct Question {
    charges: SmallVec<[Charge; INLINE]>,
    /// The names of the policies, each with the place of its charge.
    policies: SmallVec<[(Name, usize); INLINE]>,
}

impl Question {
    /// Adds a policy. Those of one key become one charge of their sum.
    pub(crate) fn push(&mut self, name: Name, charge: Charge) -> Result<(), InvalidPolicy> {
        let place = self.charges.iter().position(|other| other.key == charge.key);
        match place.map(|place| &mut self.charges[place]) {
            None => self.charges.push(charge),
            Some(twin) if twin.rule == charge.rule => twin.cost = twin.cost.saturating_add(charge.cost),
            Some(_) => {
                return Err(InvalidPolicy::new(
                    "limit",
                    "is two different numbers for one name and key in one decision; give the policies different names",
                ));
            }
        }
        self.policies.push((name, place.unwrap_or(self.charges.len() - 1)));
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// Whether it takes anything. What takes nothing need not be asked.
    pub(crate) fn costs(&self) -> bool {
        self.charges.iter().any(|charge| charge.cost > 0)
    }

    /// Whether none of its policies can refuse.
    pub(crate) fn is_shadow(&self) -> bool {
        self.charges.iter().all(|charge| charge.shadow)
    }

    /// Asks the store in this process, at once.
    pub(crate) fn ask_here(&self, store: &MemoryStore) -> Outcome {
        store.decide(&self.charges)
    }

    /// Asks the store.
    pub(crate) async fn ask(&self, store: &Store) -> Result<Outcome, StoreError> {
        let outcome = store.decide(&[&self.charges]).await.pop();
        outcome.unwrap_or_else(|| Err(StoreError::new("the store gave no answer")))
    }

    /// What was said of the policy at this place.
    pub(crate) fn verdict<'o>(&self, outcome: &'o Outcome, place: usize) -> &'o Verdict {
        let (_, charge) = self.policies[place];
        &outcome.verdicts[charge]
    }

    /// Why the policy at this place could not be decided, if it is one in shadow.
    pub(crate) fn failure(&self, outcome: &Outcome, place: usize) -> Option<StoreError> {
        let (_, charge) = self.policies[place];
        let (_, problem) = outcome.failed.iter().find(|(failed, _)| *failed == charge)?;
        Some(StoreError::new(problem))
    }

    /// What gives back the charge of the policy at this place, if it was charged.
    pub(crate) fn receipt(&self, outcome: &Outcome, place: usize, store: &Store) -> Receipt {
        let (_, charge) = self.policies[place];
        Receipt::new(store.clone(), [(self.charges[charge].clone(), &outcome.verdicts[charge])])
    }

    /// The decision that the outcome is.
    pub(crate) fn into_decision(self, outcome: &Outcome, store: &Store) -> Decision {
        let policies = self.told(&outcome.verdicts);
        let receipt = outcome.admitted.then(|| {
            let charged = self.charges.into_iter().zip(&outcome.verdicts);
            Receipt::new(store.clone(), charged)
        });
        Decision::new(policies, store.source(), receipt)
    }

    /// What policies that nobody has used would say.
    pub(crate) fn unasked(&self) -> Decision {
        let unused = |rule: &Rule| rule.verdict(rule.check(None, 0, 0), 0, 0, 0);
        let verdicts = self.charges.iter().map(|charge| unused(&charge.rule)).collect();
        Decision::new(self.told(&verdicts), Source::Unasked, None)
    }

    fn told(&self, verdicts: &Verdicts) -> Vec<PolicyDecision> {
        let told = |(name, place): &(Name, usize)| PolicyDecision {
            policy: name.to_shared(),
            shadow: self.charges[*place].shadow,
            admitted: verdicts[*place].admitted,
            limit: verdicts[*place].limit,
            remaining: verdicts[*place].remaining,
            retry_after: verdicts[*place].retry_after.map(Duration::from_micros),
            reset_after: Duration::from_micros(verdicts[*place].reset_after),
        };
        self.policies.iter().map(told).collect()
    }
}
