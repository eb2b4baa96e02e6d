//! What a store is asked: charges of distinct keys, as stores want them, and the policies that they are for.

use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::bounds::LONGEST;
use crate::decision::{Decision, PolicyDecision};
use crate::error::invalid_policy::InvalidPolicy;
use crate::error::store::StoreError;
use crate::name::Name;
use crate::on_store_error::OnStoreError;
use crate::source::Source;
use crate::store::{Charge, INLINE, Outcome, Receipt, Store, Verdicts, Waiter};

/// A list of charges to be decided together.
#[derive(Debug, Default)]
pub(crate) struct Question {
    charges: SmallVec<[Charge; INLINE]>,
    /// How long the call waits for each of them, in microseconds. A charge itself waits only where all can reserve.
    patience: SmallVec<[u64; INLINE]>,
    /// The names of the policies, each with the place of its charge.
    policies: SmallVec<[(Name, usize); INLINE]>,
    /// What becomes of it if the store is in trouble, by those that can refuse and by those in shadow.
    on_store_error: [Option<OnStoreError>; 2],
}

/// A timeout in the microseconds that a charge waits at the most: no longer than any policy remembers.
pub(crate) fn patience(timeout: Duration) -> u64 {
    timeout.as_micros().min(LONGEST.as_micros()) as u64
}

impl Question {
    /// Adds a policy. Those of one key become one charge of their sum.
    pub(crate) fn push(
        &mut self,
        name: Name,
        charge: Charge,
        on_store_error: OnStoreError,
    ) -> Result<(), InvalidPolicy> {
        let strictest = &mut self.on_store_error[usize::from(charge.shadow)];
        *strictest = Some(strictest.map_or(on_store_error, |other| other.strictest(on_store_error)));
        let place = match self.charges.iter().position(|other| other.key == charge.key) {
            None => {
                self.patience.push(charge.wait);
                self.charges.push(charge);
                self.charges.len() - 1
            }
            Some(place) if self.charges[place].spec == charge.spec => {
                let twin = &mut self.charges[place];
                twin.cost = twin.cost.saturating_add(charge.cost);
                twin.wait = twin.wait.min(charge.wait);
                self.patience[place] = twin.wait;
                place
            }
            Some(_) => {
                return Err(InvalidPolicy::new(
                    "limit",
                    "is two different numbers for one name and key in one decision; give the policies different names",
                ));
            }
        };
        self.policies.push((name, place));
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

    /// Whether the call waits for any of them.
    pub(crate) fn is_patient(&self) -> bool {
        self.required().any(|place| self.patience[place] > 0)
    }

    /// How long the call waits at the most.
    pub(crate) fn patience(&self) -> Duration {
        let longest = self.required().map(|place| self.patience[place]).max();
        Duration::from_micros(longest.unwrap_or(0))
    }

    /// What becomes of it if the store is in trouble: a shadow says so only where all are.
    #[cfg(feature = "redis")]
    pub(crate) fn on_store_error(&self) -> OnStoreError {
        let [required, shadows] = self.on_store_error;
        required.or(shadows).unwrap_or_default()
    }

    /// Takes time that has passed from the patience of the call.
    #[cfg(feature = "redis")]
    pub(crate) fn spend(&mut self, time: Duration) {
        let passed = patience(time);
        self.patience.iter_mut().for_each(|patience| *patience = patience.saturating_sub(passed));
        self.reserve();
    }

    /// Asks for the share of one of so many instances. `None` if a share could never admit what the policy would, else the
    /// shadows of which that is so, by their place.
    #[cfg(feature = "redis")]
    pub(crate) fn divide(&mut self, instances: u32) -> Option<Vec<usize>> {
        let mut unshared = Vec::new();
        for (place, charge) in self.charges.iter_mut().enumerate() {
            let share = charge.spec.per_instance(instances);
            if charge.spec.fits(charge.cost) && !share.fits(charge.cost) {
                if !charge.shadow {
                    return None;
                }
                unshared.push(place);
            }
            charge.spec = share;
        }
        Some(unshared)
    }

    /// Whether all that can refuse can take permits that are yet to come.
    pub(crate) fn reserves(&self) -> bool {
        self.required().all(|place| self.charges[place].spec.reserves())
    }

    /// Takes nothing that is yet to come, but for shadows, for which nobody waits.
    pub(crate) fn reserve_nothing(&mut self) {
        self.charges.iter_mut().filter(|charge| !charge.shadow).for_each(|charge| charge.wait = 0);
    }

    /// Takes what is yet to come, as far as the call has the patience.
    pub(crate) fn reserve(&mut self) {
        self.charges.iter_mut().zip(&self.patience).for_each(|(charge, patience)| charge.wait = *patience);
    }

    /// The charge that refuses the longest, by its place, and how long until it may be worth to ask again, in microseconds:
    /// if the call has been patient for so long, and still is for all that refuse.
    pub(crate) fn next_try(&self, outcome: &Outcome, waited: u64) -> Option<(usize, u64)> {
        let refusing = self.required().filter(|place| !outcome.verdicts[*place].admitted);
        let waits = refusing.map(|place| {
            let retry_after = outcome.verdicts[place].retry_after?;
            let in_time = waited.saturating_add(retry_after) <= self.patience[place];
            in_time.then_some((place, retry_after))
        });
        let waits: Option<SmallVec<[(usize, u64); INLINE]>> = waits.collect();
        waits?.into_iter().max_by_key(|(_, retry_after)| *retry_after)
    }

    /// Whether it asks for more than a policy ever admits.
    pub(crate) fn is_vain(&self) -> bool {
        let vain = |charge: &Charge| charge.spec.max_cost().is_some_and(|most| charge.cost > most);
        self.required().any(|place| vain(&self.charges[place]))
    }

    /// The first policy that the charge at this place is for.
    pub(crate) fn name(&self, place: usize) -> &str {
        self.policies.iter().find(|(_, charge)| *charge == place).map_or("", |(name, _)| name.as_str())
    }

    /// The policy that a call waits for the longest.
    pub(crate) fn slowest(&self, outcome: &Outcome) -> &str {
        let wait = |place: usize| outcome.verdicts[place].wait;
        let required = self.policies.iter().filter(|(_, place)| !self.charges[*place].shadow);
        required.max_by_key(|(_, place)| wait(*place)).map_or("", |(name, _)| name.as_str())
    }

    fn required(&self) -> impl Iterator<Item = usize> {
        (0..self.charges.len()).filter(|place| !self.charges[*place].shadow)
    }

    /// Takes over how the charges of a call that may have moved up are found again.
    pub(crate) fn moved(&self, outcome: &mut Outcome, waiter: &Waiter) {
        let charged = self.charges.iter().zip(&mut outcome.verdicts);
        let charged = charged.filter(|(charge, verdict)| charge.is_made(verdict));
        charged
            .enumerate()
            .for_each(|(place, (_, verdict))| verdict.charge_id = waiter.slot(place).charge_id);
    }

    pub(crate) fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Asks the store.
    #[cfg(feature = "redis")]
    pub(crate) async fn ask(&self, store: &Store) -> Result<Outcome, StoreError> {
        let outcome = store.decide(&[&self.charges]).await.pop();
        outcome.unwrap_or_else(|| Err(StoreError::transient("the store gave no answer")))
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
        Some(StoreError::transient(problem))
    }

    /// What gives back the charge of the policy at this place, if it was charged.
    pub(crate) fn receipt(&self, outcome: &Outcome, place: usize, store: &Store) -> Receipt {
        let (_, charge) = self.policies[place];
        Receipt::new(store.clone(), [(self.charges[charge].clone(), &outcome.verdicts[charge])])
    }

    /// The decision that the outcome is.
    pub(crate) fn decision(
        &self,
        outcome: &Outcome,
        waited: Duration,
        (source, store): (Source, Option<&Store>),
    ) -> Decision {
        let receipt = store.filter(|_| outcome.admitted).map(|store| self.receipt_of_all(outcome, store));
        Decision::new(self.told(&outcome.verdicts), source, waited, receipt)
    }

    /// What gives back all that was charged.
    pub(crate) fn receipt_of_all(&self, outcome: &Outcome, store: &Store) -> Receipt {
        let charges = self.charges.iter().cloned().zip(&outcome.verdicts);
        Receipt::new(store.clone(), charges.filter(|_| outcome.admitted))
    }

    /// What policies that nobody has used would say.
    pub(crate) fn unasked(&self) -> Decision {
        Decision::new(self.told(&self.unused()), Source::Skipped, Duration::ZERO, None)
    }

    pub(crate) fn unused(&self) -> Verdicts {
        let unused = |spec: &AlgorithmSpec| spec.verdict(spec.check(None, 0, 0), 0, 0, 0);
        self.charges.iter().map(|charge| unused(&charge.spec)).collect()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::policy::{Policy, TokenBucket};

    #[test]
    fn of_two_charges_of_one_key_the_shorter_patience_holds() {
        let spec = Policy::from(TokenBucket::per_second(1)).spec().unwrap();
        for waits in [[5, 9], [9, 5]] {
            let mut question = Question::default();
            for wait in waits {
                let charge = Charge { key: Key::raw("a"), spec, cost: 1, wait, shadow: false };
                question.push(Name::Static("a"), charge, OnStoreError::Local).unwrap();
            }
            assert_eq!((question.charges()[0].cost, question.charges()[0].wait), (2, 5));
            assert_eq!(question.patience(), Duration::from_micros(5));
        }
    }
}
