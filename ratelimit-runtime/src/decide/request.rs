//! A request to a store: charges of distinct keys, and the policies they are for.

use std::collections::HashMap;
use std::time::Duration;

use smallvec::SmallVec;

use crate::algorithm::{AlgorithmSpec, UNKNOWN_BUT_NEXT, known};
use crate::base::bounds::MAX_PERIOD;
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::charges::{Charges, PolicyCharge};
use crate::decide::definition::OwnedDefinition;
use crate::decide::on_store_error::OnStoreError;
use crate::key::{Key, KeyParts, PartsOfKey};
use crate::policy::LeaseSize;
use crate::store::{Charge, INLINE, Outcome, line};

/// The number of charges from which on a map finds their keys.
const MANY: usize = 16;

/// After how long a call that waits for others to end looks whether they have, at least: one that may be next, or another.
const NEXT_LOOKS: Duration = Duration::from_millis(10);
pub(crate) const OTHERS_LOOK: Duration = Duration::from_millis(50);

/// The charges of one call, to be decided together, in a form that may travel.
#[derive(Clone, Debug, Default)]
pub(crate) struct AcquireRequest {
    charges: SmallVec<[Charge; INLINE]>,
    /// How long the call may wait for each charge, in µs. `Charge::wait` is the part of it that the store may reserve now.
    max_waits: SmallVec<[u64; INLINE]>,
    policies: SmallVec<[RequestedPolicy; INLINE]>,
    /// The parts of the keys, if their texts may be wanted.
    parts: KeyParts,
    /// Whether a refusal tells its key.
    pub(crate) tells_keys: bool,
    /// The strictest of the policies that can refuse.
    on_store_error: Option<OnStoreError>,
    /// The strictest of the shadow policies.
    shadow_on_store_error: Option<OnStoreError>,
}

/// A policy of a request.
#[derive(Clone, Debug)]
pub(crate) struct RequestedPolicy {
    pub(crate) definition: OwnedDefinition,
    /// The index of its charge, which policies of the same key share.
    pub(crate) charge: usize,
    /// What the call asked of this policy.
    pub(crate) cost: u64,
    /// Where the parts of its key are.
    parts: (u32, u32),
}

/// A refused charge that is worth another try.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextTry {
    /// The index of the charge.
    pub(crate) charge: usize,
    /// When it may succeed, or if that depends on when other calls end, after how long to look at least.
    pub(crate) wait: Result<Duration, Duration>,
}

/// Converts a timeout to µs, capped at the longest time that any policy remembers.
pub(crate) const fn max_wait(timeout: Duration) -> u64 {
    let micros = timeout.as_micros();
    if micros < MAX_PERIOD.as_micros() { micros as u64 } else { MAX_PERIOD.as_micros() as u64 }
}

impl AcquireRequest {
    /// Adds these charges to a request that has none, given the key of each and what happens on a store error. A charge that
    /// contradicts another is a failure.
    pub(crate) fn fill(
        &mut self,
        charges: &mut Charges<'_>,
        complete: impl Fn(&PolicyCharge<'_>, PartsOfKey<'_>) -> (Key, OnStoreError),
    ) {
        let (mut by_key, mut failures) = (HashMap::new(), Vec::new());
        for asked in charges.iter() {
            let PolicyCharge { definition, cost, wait, shadow, parts, .. } = *asked;
            let (key, on_store_error) = complete(asked, charges.parts_of(asked));
            let charge = Charge { key, spec: *asked.spec(), cost, wait, shadow };
            let policy = RequestedPolicy { definition: definition.to_owned(), charge: 0, cost, parts };
            if let Err(invalid) = self.push(policy, charge, on_store_error, &mut by_key) {
                failures.push((definition, cost, shadow, invalid));
            }
        }
        self.parts = charges.take_parts();
        for (definition, cost, shadow, invalid) in failures {
            charges.fail(definition, Ok(cost), shadow, invalid.into());
        }
    }

    /// Adds a policy. Charges to the same key become one of their sum. `by_key` starts empty.
    fn push(
        &mut self,
        mut policy: RequestedPolicy,
        charge: Charge,
        on_store_error: OnStoreError,
        by_key: &mut HashMap<Key, usize>,
    ) -> Result<(), InvalidPolicy> {
        let same = if self.charges.len() < MANY {
            self.charges.iter().position(|other| other.key == charge.key)
        } else {
            let new = self.charges.iter().enumerate().skip(by_key.len());
            by_key.extend(new.map(|(index, charge)| (charge.key.clone(), index)));
            by_key.get(&charge.key).copied()
        };
        let strictest =
            if charge.shadow { &mut self.shadow_on_store_error } else { &mut self.on_store_error };
        *strictest = Some(strictest.map_or(on_store_error, |other| other.stricter(on_store_error)));
        policy.charge = match same {
            None => {
                self.max_waits.push(charge.wait);
                self.charges.push(charge);
                self.charges.len() - 1
            }
            Some(index) if self.charges[index].spec == charge.spec => {
                let same_key = &mut self.charges[index];
                same_key.cost = same_key.cost.saturating_add(charge.cost);
                same_key.wait = same_key.wait.min(charge.wait);
                self.max_waits[index] = same_key.wait;
                index
            }
            Some(_) => {
                return Err(InvalidPolicy::new(
                    "limit",
                    "differs between two policies with the same name and key; give the policies different names",
                ));
            }
        };
        self.policies.push(policy);
        Ok(())
    }

    pub(crate) fn charges(&self) -> &[Charge] {
        &self.charges
    }

    /// Takes the charges out, after which the request is of no use.
    pub(crate) fn take_charges(&mut self) -> impl Iterator<Item = Charge> {
        self.charges.drain(..)
    }

    /// Returns the parts of the key of a policy, if they are kept.
    pub(crate) fn parts_of(&self, policy: &RequestedPolicy) -> PartsOfKey<'_> {
        self.parts.of_key(policy.parts.0, policy.parts.1)
    }

    pub(crate) fn policies(&self) -> &[RequestedPolicy] {
        &self.policies
    }

    /// Returns the charge and the size of a lease, if the policy has one.
    pub(crate) fn lease(&self) -> Option<(&Charge, LeaseSize)> {
        match (&*self.charges, &*self.policies) {
            ([charge], [policy]) if !charge.shadow => Some((charge, policy.definition.attribute.lease?)),
            _ => None,
        }
    }

    /// Whether it takes any permits.
    pub(crate) fn has_cost(&self) -> bool {
        self.charges.iter().any(|charge| charge.cost > 0)
    }

    /// Whether observers are told of keys of any policy that near their limits.
    pub(crate) fn notifies(&self) -> bool {
        self.policies.iter().any(|policy| policy.definition.attribute.notify_at.is_some())
    }

    /// Whether none of its policies can refuse.
    pub(crate) fn is_shadow(&self) -> bool {
        self.charges.iter().all(|charge| charge.shadow)
    }

    /// Whether any of its policies never refuses.
    pub(crate) fn has_shadow(&self) -> bool {
        self.charges.iter().any(|charge| charge.shadow)
    }

    /// Returns the indices of the charges whose refusals may be repeated: those that can refuse, take permits, and are not
    /// refunded by the end or the output of calls, which other processes make too.
    pub(crate) fn deniable(&self) -> impl Iterator<Item = usize> {
        let is_refundable = |policy: &&RequestedPolicy| policy.definition.attribute.refundable;
        let refundable: SmallVec<[usize; INLINE]> =
            self.policies.iter().filter(is_refundable).map(|policy| policy.charge).collect();
        let is_deniable = |charge: &Charge| charge.cost > 0 && !charge.spec.is_semaphore();
        self.required().filter(move |index| is_deniable(&self.charges[*index]) && !refundable.contains(index))
    }

    /// Keeps only the charges at these indices, which are in order, and their policies.
    pub(crate) fn keep(&mut self, kept: &[usize]) {
        let new_index = |index: usize| kept.binary_search(&index).ok();
        let mut index = 0..self.charges.len();
        self.charges.retain(|_| index.next().and_then(new_index).is_some());
        self.max_waits = kept.iter().map(|index| self.max_waits[*index]).collect();
        self.policies.retain(|policy| {
            let new_index = new_index(policy.charge);
            policy.charge = new_index.unwrap_or_default();
            new_index.is_some()
        });
    }

    /// Whether the call may wait for any of its charges.
    pub(crate) fn may_wait(&self) -> bool {
        self.required().any(|index| self.max_waits[index] > 0)
    }

    /// Returns how long the call may wait.
    pub(crate) fn max_wait(&self) -> Duration {
        let longest = self.required().map(|index| self.max_waits[index]).max();
        Duration::from_micros(longest.unwrap_or(0))
    }

    /// Returns what happens on a transient store error. Shadow policies decide only where there are no others.
    pub(crate) fn on_store_error(&self) -> OnStoreError {
        self.on_store_error.or(self.shadow_on_store_error).unwrap_or_default()
    }

    /// Deducts time that has passed from what the call may still wait.
    pub(crate) fn spend_wait(&mut self, elapsed: Duration) {
        let elapsed = max_wait(elapsed);
        self.max_waits.iter_mut().for_each(|wait| *wait = wait.saturating_sub(elapsed));
        self.allow_reservations();
    }

    /// Replaces each policy by one instance's share of it. Returns the shadow charges, by index, that a share can never admit
    /// although the policy can; `None` if that holds for a charge that can refuse.
    pub(crate) fn divide(&mut self, instances: u32) -> Option<Vec<usize>> {
        let mut never_admitted = Vec::new();
        for (index, charge) in self.charges.iter_mut().enumerate() {
            let share = charge.spec.per_instance(instances);
            if charge.spec.fits(charge.cost) && !share.fits(charge.cost) {
                if !charge.shadow {
                    return None;
                }
                never_admitted.push(index);
            }
            charge.spec = share;
        }
        Some(never_admitted)
    }

    /// Whether the call may take future permits at once: only those of a single charge that can refuse.
    pub(crate) fn can_reserve(&self) -> bool {
        let mut required = self.required();
        required.next().is_none_or(|index| self.charges[index].spec.reserves()) && required.next().is_none()
    }

    /// Whether the call may take future permits once all its charges will be ready by the same slot.
    pub(crate) fn starts_together(&self) -> bool {
        self.line().is_some()
    }

    /// Returns the index of the charge at whose slot the call starts then.
    fn line(&self) -> Option<usize> {
        line(self.charges.iter().zip(&self.max_waits).map(|(charge, wait)| (charge, *wait)))
    }

    /// Takes no future permits, except for shadows, which delay no call.
    pub(crate) fn forbid_reservations(&mut self) {
        self.charges.iter_mut().filter(|charge| !charge.shadow).for_each(|charge| charge.wait = 0);
    }

    /// Takes future permits as far as the call may wait.
    pub(crate) fn allow_reservations(&mut self) {
        self.allow_reservations_after(Duration::ZERO);
    }

    /// Takes future permits as far as the call, having waited for `waited`, may still wait. Its line has not made it wait so far.
    pub(crate) fn allow_reservations_after(&mut self, waited: Duration) {
        let (line, waited) = (self.line(), max_wait(waited));
        for (index, (charge, wait)) in self.charges.iter_mut().zip(&self.max_waits).enumerate() {
            charge.wait = if line == Some(index) { *wait } else { wait.saturating_sub(waited) };
        }
    }

    /// Returns the refused charge with the longest wait, if the call, having waited for `waited`, can wait for every charge
    /// that refused it.
    pub(crate) fn next_try(&self, outcome: &Outcome, waited: Duration) -> Option<NextTry> {
        let waited = waited.as_micros() as u64;
        // For its line the call waits only at a slot.
        let line = line(self.charges.iter().map(|charge| (charge, charge.wait)));
        if line.is_some_and(|line| !outcome.verdicts[line].admitted) {
            return None;
        }
        let mut longest: Option<(usize, u64)> = None;
        for index in self.required().filter(|index| !outcome.verdicts[*index].admitted) {
            // At once would be a loop that lets no time pass.
            let wait = outcome.verdicts[index].retry_after?.max(1);
            let least = if known(Some(wait)).is_some() { wait } else { 1 };
            if waited.saturating_add(least) > self.max_waits[index] {
                return None;
            }
            if longest.is_none_or(|(_, other)| wait >= other) {
                longest = Some((index, wait));
            }
        }
        longest.map(|(charge, wait)| NextTry {
            charge,
            wait: known(Some(wait)).ok_or(if wait == UNKNOWN_BUT_NEXT { NEXT_LOOKS } else { OTHERS_LOOK }),
        })
    }

    /// Says of semaphores how long the call may still wait, having waited for `waited`: one that waits gets a turn.
    pub(crate) fn wait_for_holds(&mut self, waited: Duration) {
        let waited = max_wait(waited);
        for (charge, wait) in self.charges.iter_mut().zip(&self.max_waits) {
            if charge.spec.is_semaphore() && !charge.shadow {
                charge.wait = wait.saturating_sub(waited);
            }
        }
    }

    /// Whether calls of a policy with this charge may pause its key.
    pub(crate) fn is_pausable(&self, charge: usize) -> bool {
        let mut policies = self.policies.iter();
        policies.any(|policy| policy.charge == charge && policy.definition.attribute.may_pause())
    }

    /// Whether the call, having waited for `waited`, may wait as many microseconds for this charge.
    pub(crate) fn may_wait_for(&self, charge: usize, waited: Duration, micros: u64) -> bool {
        max_wait(waited).saturating_add(micros) <= self.max_waits[charge]
    }

    /// Whether a charge costs more than its policy can ever admit.
    pub(crate) fn is_unsatisfiable(&self) -> bool {
        let exceeds = |charge: &Charge| charge.spec.max_cost().is_some_and(|most| charge.cost > most);
        self.required().any(|index| exceeds(&self.charges[index]))
    }

    /// Returns the name of the first policy of the charge at this index.
    pub(crate) fn policy_of(&self, charge: usize) -> &str {
        let policy = self.policies.iter().find(|policy| policy.charge == charge);
        policy.map_or("", |policy| policy.definition.name.as_str())
    }

    /// Returns the name of the policy that the call waits for the longest.
    pub(crate) fn slowest_policy(&self, outcome: &Outcome) -> &str {
        let required = self.policies.iter().filter(|policy| !self.charges[policy.charge].shadow);
        let slowest = required.max_by_key(|policy| outcome.verdicts[policy.charge].wait);
        slowest.map_or("", |policy| policy.definition.name.as_str())
    }

    /// Returns the outcome of a call that goes ahead uncharged: what its policies say of keys without state.
    pub(crate) fn unused_outcome(&self) -> Outcome {
        let unused = |spec: &AlgorithmSpec| spec.verdict(spec.check(None, 0, 0), 0, 0, 0);
        let verdicts = self.charges.iter().map(|charge| unused(&charge.spec)).collect();
        Outcome { admitted: true, verdicts, ..Outcome::default() }
    }

    fn required(&self) -> impl Iterator<Item = usize> {
        (0..self.charges.len()).filter(|index| !self.charges[*index].shadow)
    }
}

#[cfg(test)]
impl RequestedPolicy {
    fn of_test(name: &str) -> Self {
        let policy = crate::policy::Policy::from(crate::policy::TokenBucket::per_second(1));
        let definition = crate::decide::definition::Definition::of_limiter(
            name.into(),
            policy,
            policy.spec().expect("valid"),
        );
        let definition = OwnedDefinition::Counted(std::sync::Arc::new(definition));
        RequestedPolicy { definition, charge: 0, cost: 1, parts: (0, 0) }
    }
}

impl AsRef<[Charge]> for AcquireRequest {
    fn as_ref(&self) -> &[Charge] {
        self.charges()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;
    use crate::policy::{Policy, TokenBucket};

    fn push(request: &mut AcquireRequest, key: &str, wait: u64, by_key: &mut HashMap<Key, usize>) {
        let spec = Policy::from(TokenBucket::per_second(1)).spec().unwrap();
        let charge = Charge { key: Key::raw(key), spec, cost: 1, wait, shadow: false };
        request.push(RequestedPolicy::of_test("a"), charge, OnStoreError::Local, by_key).unwrap();
    }

    /// Far too many for comparisons of all pairs.
    #[test]
    fn many_charges_are_added_up_by_key() {
        let (mut request, mut by_key) = (AcquireRequest::default(), HashMap::new());
        for i in 0..300_000 {
            push(&mut request, &(i % 200_000).to_string(), 0, &mut by_key);
        }
        assert_eq!((request.charges().len(), request.policies().len()), (200_000, 300_000));
        assert_eq!(request.charges().iter().filter(|charge| charge.cost == 2).count(), 100_000);
        assert_eq!(request.policies()[299_999].charge, 99_999);
    }

    #[test]
    fn charges_are_kept_with_their_policies() {
        let mut request = AcquireRequest::default();
        for (wait, key) in ["a", "b", "a", "c", "d", "c"].into_iter().enumerate() {
            push(&mut request, key, wait as u64, &mut HashMap::new());
        }
        request.keep(&[0, 2]);
        let keys: Vec<_> = request.charges().iter().map(|charge| charge.key.clone()).collect();
        assert_eq!(keys, [Key::raw("a"), Key::raw("c")]);
        let charges: Vec<_> = request.policies().iter().map(|policy| policy.charge).collect();
        assert_eq!(charges, [0, 0, 1, 1]);
        assert_eq!(request.max_wait(), Duration::from_micros(3));
    }

    #[test]
    fn charges_to_one_key_wait_the_shorter_time() {
        for waits in [[5, 9], [9, 5]] {
            let mut request = AcquireRequest::default();
            waits.into_iter().for_each(|wait| push(&mut request, "a", wait, &mut HashMap::new()));
            assert_eq!((request.charges()[0].cost, request.charges()[0].wait), (2, 5));
            assert_eq!(request.max_wait(), Duration::from_micros(5));
        }
    }
}
