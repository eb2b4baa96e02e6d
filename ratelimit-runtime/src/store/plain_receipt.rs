//! Receipts for one charge of a bucket or a fixed window in process. They hold numbers only, so that making and dropping one costs
//! nothing.

use std::ops::Deref;

use super::charge::Charge;
use super::correction::Corrected;
use super::memory::StoreId;
use super::{MemoryStore, Store};
use crate::algorithm::{ChargeId, PlainSpec, Verdict};
use crate::key::policy_id::PolicyId;
use crate::key::{Fingerprint, Key, Repr};

/// Gives one charge of a bucket or a fixed window in process back, once. It does not keep the store. That of a semaphore belongs into
/// an [`OwnedReceipt`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlainReceipt {
    store: StoreId,
    fingerprint: Fingerprint,
    policy: PolicyId,
    spec: PlainSpec,
    cost: u64,
    at: u64,
    /// The level of a charge to an adjustable bucket, whose total of refunds is 0, or the total of another one, whose level is 0.
    level_or_credited: u64,
}

impl PlainReceipt {
    /// The receipt for a charge of `cost` permits, whose level or total of refunds is 0.
    #[inline]
    pub(crate) fn new(
        store: StoreId,
        fingerprint: Fingerprint,
        policy: PolicyId,
        spec: PlainSpec,
        cost: u64,
        charge_id: ChargeId,
    ) -> Self {
        let ChargeId { at, level, credited } = charge_id;
        debug_assert!(level == 0 || credited == 0, "{charge_id:?} does not fit into a receipt");
        PlainReceipt { store, fingerprint, policy, spec, cost, at, level_or_credited: level | credited }
    }

    /// The receipt for a charge of an admitted decision, if its policy has such receipts.
    pub(crate) fn of(charge: &Charge, verdict: &Verdict, store: &Store) -> Option<Self> {
        let (Store::Memory(store), Key(Repr::Hash(fingerprint), policy)) = (store, &charge.key) else {
            return None;
        };
        let spec = PlainSpec::of(&charge.spec)?;
        let ChargeId { level, credited, .. } = verdict.charge_id;
        let receipt =
            || PlainReceipt::new(store.id(), *fingerprint, *policy, spec, charge.cost, verdict.charge_id);
        (charge.is_made(verdict) && (level == 0 || credited == 0)).then(receipt)
    }

    /// Refunds the charge as far as it still counts. A store that is gone has nothing to refund. Called once.
    pub(crate) fn refund(&self) {
        if !self.spec.is_semaphore() {
            self.refund_part(self.cost);
        }
    }

    /// Replaces the charge by what was used. Called once. Returns what came of it.
    pub(crate) fn settle(&self, used: u64) -> Corrected {
        if self.spec.is_semaphore() {
            return Corrected::Whole;
        }
        if used <= self.cost {
            self.refund_part(self.cost - used);
            return Corrected::Whole;
        }
        let Some(store) = MemoryStore::by_id(self.store) else { return Corrected::Whole };
        Corrected::cut(store.debit(&self.key(), &self.spec.spec(), used - self.cost))
    }

    /// Whether the charge is a hold.
    #[inline]
    pub(crate) fn is_hold(&self) -> bool {
        self.spec.is_semaphore()
    }

    /// Whether the charge is of a policy that can be settled.
    pub(crate) fn can_settle(&self) -> bool {
        self.spec.is_semaphore() || self.spec.spec().can_owe()
    }

    fn refund_part(&self, cost: u64) {
        let PlainReceipt { store, spec, at, level_or_credited, .. } = *self;
        let Some(store) = MemoryStore::by_id(store).filter(|_| cost > 0) else { return };
        let [level, credited] =
            if spec.is_adjustable() { [level_or_credited, 0] } else { [0, level_or_credited] };
        store.refund_charge(&self.key(), &spec, cost, ChargeId { at, level, credited });
    }

    fn key(&self) -> Key {
        Key(Repr::Hash(self.fingerprint), self.policy)
    }
}

/// A receipt with which a hold ends, if it is that of a semaphore.
#[derive(Debug)]
pub(crate) struct OwnedReceipt(pub(crate) PlainReceipt);

impl Deref for OwnedReceipt {
    type Target = PlainReceipt;

    fn deref(&self) -> &PlainReceipt {
        &self.0
    }
}

impl Drop for OwnedReceipt {
    #[inline]
    fn drop(&mut self) {
        if self.is_hold() {
            self.refund_part(self.cost);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::algorithm::AlgorithmSpec;
    use crate::base::clock::Clock;
    use crate::base::rate::Rate;
    use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

    const HOUR: Duration = Duration::from_secs(3600);

    fn plain() -> [Policy; 9] {
        [
            TokenBucket::per_second(3).burst(10).into(),
            TokenBucket::per_second(4).burst(10).borrow().into(),
            LeakyBucket::draining(10, HOUR).into(),
            LeakyBucket::draining(10, HOUR).queue().into(),
            FixedWindow::new(10, HOUR).into(),
            FixedWindow::new(10, HOUR).aligned().into(),
            TokenBucket::per_second(3).burst(10).adjustable().into(),
            LeakyBucket::draining(10, HOUR / 100).adjustable().into(),
            LeakyBucket::draining(10, HOUR / 100).queue().adjustable().into(),
        ]
    }

    fn memory() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(10, Clock::manual(Arc::new(AtomicU64::new(0)))))
    }

    fn charge(spec: AlgorithmSpec) -> Charge {
        let key = Key(Repr::Hash(Fingerprint(1, 2)), PolicyId::default());
        Charge { key, spec, cost: 2, wait: 0, shadow: false }
    }

    #[test]
    fn specs_keep_all_numbers() {
        for policy in plain() {
            let spec = policy.spec().unwrap();
            assert_eq!(PlainSpec::of(&spec).unwrap().spec(), spec);
        }
        for policy in [
            TokenBucket::per_second(3).borrow().into(),
            TokenBucket::new(Rate::new(1, Duration::from_nanos(1_000_000_001))).burst(3).borrow().into(),
            TokenBucket::per_second(3).borrow().adjustable().into(),
            LeakyBucket::draining(10, HOUR).adjustable().into(),
            Policy::from(SlidingWindow::new(10, HOUR)),
        ] {
            assert_eq!(PlainSpec::of(&policy.spec().unwrap()), None);
        }
    }

    #[test]
    fn charge_is_refunded_and_reported() {
        for policy in plain() {
            let memory = memory();
            let refunds = Arc::new(AtomicUsize::new(0));
            let listener = Arc::clone(&refunds);
            memory.on_refund(move |_| _ = listener.fetch_add(1, Ordering::Relaxed));
            let (charge, store) = (charge(policy.spec().unwrap()), Store::Memory(Arc::clone(&memory)));
            let outcome = memory.decide(std::slice::from_ref(&charge));
            let receipt = PlainReceipt::of(&charge, &outcome.verdicts[0], &store).unwrap();
            assert_eq!(memory.len(), 1);
            receipt.refund();
            let left = memory.decide(&[Charge { cost: 0, ..charge }]).verdicts[0].reset_after;
            assert_eq!(left, 0, "{policy:?}");
            assert_eq!(refunds.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn charge_after_other_refunds_is_refunded_in_full() {
        for policy in plain() {
            let memory = Arc::new(MemoryStore::new(10, Clock::manual(Arc::new(AtomicU64::new(1000)))));
            let (charge, store) = (charge(policy.spec().unwrap()), Store::Memory(Arc::clone(&memory)));
            let make = || memory.decide(std::slice::from_ref(&charge)).verdicts[0];
            let left = || memory.decide(&[Charge { cost: 0, ..charge.clone() }]).verdicts[0].reset_after;
            for verdict in [make(), make()] {
                memory.refund(&charge.key, &charge.spec, charge.cost, Some(verdict.charge_id));
            }
            let (before, last) = (left(), make());
            let ChargeId { level, credited, .. } = last.charge_id;
            match PlainReceipt::of(&charge, &last, &store) {
                Some(receipt) => receipt.refund(),
                None => {
                    assert!(level > 0 && credited > 0, "{policy:?}");
                    continue;
                }
            }
            assert_eq!(left(), before, "{policy:?}");
        }
    }

    #[test]
    fn window_that_is_over_is_not_refunded_to_the_next() {
        let (time, policy) = (Arc::new(AtomicU64::new(1000)), FixedWindow::new(10, HOUR));
        let memory = Arc::new(MemoryStore::new(10, Clock::manual(Arc::clone(&time))));
        let (charge, store) =
            (charge(Policy::from(policy).spec().unwrap()), Store::Memory(Arc::clone(&memory)));
        let make = || memory.decide(std::slice::from_ref(&charge)).verdicts[0];
        let receipt = PlainReceipt::of(&charge, &make(), &store).unwrap();
        time.fetch_add(HOUR.as_micros() as u64, Ordering::SeqCst);
        assert_eq!(make().remaining, 8);
        receipt.refund();
        assert_eq!(make().remaining, 6);
    }

    #[test]
    fn nothing_is_refunded_once_the_store_is_gone() {
        let memory = memory();
        let (charge, id) = (charge(plain()[0].spec().unwrap()), memory.id());
        let outcome = memory.decide(std::slice::from_ref(&charge));
        let store = Store::Memory(memory);
        let receipt = PlainReceipt::of(&charge, &outcome.verdicts[0], &store).unwrap();
        assert!(MemoryStore::by_id(id).is_some());
        drop(store);
        assert!(MemoryStore::by_id(id).is_none());
        receipt.refund();
    }

    #[test]
    fn uncharged_calls_have_no_plain_receipt() {
        let memory = memory();
        let free = Charge { cost: 0, ..charge(plain()[0].spec().unwrap()) };
        let never = Charge { cost: 11, ..free.clone() };
        for charge in [free, never] {
            let outcome = memory.decide(std::slice::from_ref(&charge));
            let store = Store::Memory(Arc::clone(&memory));
            assert!(PlainReceipt::of(&charge, &outcome.verdicts[0], &store).is_none());
        }
    }
}
