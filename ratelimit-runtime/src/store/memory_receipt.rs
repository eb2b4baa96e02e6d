//! Receipts for one charge in process. They hold numbers only, so that making and dropping one costs nothing.

use std::ops::Deref;

use super::charge::Charge;
use super::correction::Corrected;
use super::memory::StoreId;
use super::{MemoryStore, Store};
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::key::policy_id::PolicyId;
use crate::key::{Fingerprint, Key, Repr};

/// Gives one charge in process back, once. It does not keep the store. That of a semaphore belongs in an [`OwnedReceipt`], or in
/// [`OwnedReceipts`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemoryReceipt {
    store: StoreId,
    fingerprint: Fingerprint,
    policy: PolicyId,
    spec: AlgorithmSpec,
    cost: u64,
    charge_id: ChargeId,
}

impl MemoryReceipt {
    /// The receipt for a charge of `cost` permits.
    #[inline]
    pub(crate) fn new(
        store: StoreId,
        (fingerprint, policy): (Fingerprint, PolicyId),
        spec: &AlgorithmSpec,
        cost: u64,
        charge_id: ChargeId,
    ) -> Self {
        MemoryReceipt { store, fingerprint, policy, spec: *spec, cost, charge_id }
    }

    /// The receipt for a charge of an admitted decision, if it was made in process.
    pub(crate) fn of(charge: &Charge, verdict: &Verdict, store: &Store) -> Option<Self> {
        let (Store::Memory(store), Key(Repr::Hash(fingerprint), policy)) = (store, &charge.key) else {
            return None;
        };
        let key = (*fingerprint, *policy);
        let receipt = || MemoryReceipt::new(store.id(), key, &charge.spec, charge.cost, verdict.charge_id);
        charge.is_made(verdict).then(receipt)
    }

    /// Refunds the charge as far as it still counts. A store that is gone has nothing to refund. Called once.
    pub(crate) fn refund(&self) {
        if !self.is_hold() {
            self.refund_part(self.cost);
        }
    }

    /// Replaces the charge by what was used. Called once. Returns what came of it.
    pub(crate) fn settle(&self, used: u64) -> Corrected {
        if self.is_hold() {
            return Corrected::Whole;
        }
        if used <= self.cost {
            self.refund_part(self.cost - used);
            return Corrected::Whole;
        }
        let Some(store) = MemoryStore::by_id(self.store) else { return Corrected::Whole };
        Corrected::cut(store.debit(&self.key(), &self.spec, used - self.cost))
    }

    /// Frees the permits of a hold. Called once, by the `Drop` of its owner.
    #[inline]
    pub(crate) fn end(&self) {
        if self.is_hold() {
            self.refund_part(self.cost);
        }
    }

    /// Whether the charge is a hold.
    #[inline]
    pub(crate) fn is_hold(&self) -> bool {
        self.spec.is_semaphore()
    }

    /// Whether the charge is of a policy that can be settled.
    pub(crate) fn can_settle(&self) -> bool {
        self.is_hold() || self.spec.can_owe()
    }

    fn refund_part(&self, cost: u64) {
        let Some(store) = MemoryStore::by_id(self.store).filter(|_| cost > 0) else { return };
        store.refund(&self.key(), &self.spec, cost, Some(self.charge_id));
    }

    fn key(&self) -> Key {
        Key(Repr::Hash(self.fingerprint), self.policy)
    }
}

/// A receipt with which a hold ends, if it is that of a semaphore.
#[derive(Debug)]
pub(crate) struct OwnedReceipt(pub(crate) MemoryReceipt);

/// Up to `N` of them. An array, so that each is written where it stays: whoever moves what was written a moment ago waits for it.
pub(crate) struct OwnedReceipts<const N: usize>(pub(crate) [Option<MemoryReceipt>; N]);

impl Deref for OwnedReceipt {
    type Target = MemoryReceipt;

    fn deref(&self) -> &MemoryReceipt {
        &self.0
    }
}

impl Drop for OwnedReceipt {
    #[inline]
    fn drop(&mut self) {
        self.0.end();
    }
}

impl<const N: usize> Default for OwnedReceipts<N> {
    #[inline]
    fn default() -> Self {
        OwnedReceipts([None; N])
    }
}

impl<const N: usize> Drop for OwnedReceipts<N> {
    #[inline]
    fn drop(&mut self) {
        self.0.iter().flatten().for_each(MemoryReceipt::end);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
    use std::time::Duration;

    use super::*;
    use crate::base::clock::Clock;
    use crate::policy::{FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

    const HOUR: Duration = Duration::from_secs(3600);

    fn policies() -> [Policy; 14] {
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
            TokenBucket::per_second(3).borrow().into(),
            TokenBucket::per_second(3).burst(10).interval_refill().into(),
            LeakyBucket::draining(10, HOUR).adjustable().into(),
            SlidingWindow::new(10, HOUR).into(),
            SlidingWindow::new(10, HOUR).precision(HOUR / 10).into(),
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
    fn charge_is_refunded_and_reported() {
        for policy in policies() {
            let memory = memory();
            let refunds = Arc::new(AtomicUsize::new(0));
            let listener = Arc::clone(&refunds);
            memory.on_refund(move |_| _ = listener.fetch_add(1, Ordering::Relaxed));
            let (charge, store) = (charge(policy.spec().unwrap()), Store::Memory(Arc::clone(&memory)));
            let outcome = memory.decide(std::slice::from_ref(&charge));
            let receipt = MemoryReceipt::of(&charge, &outcome.verdicts[0], &store).unwrap();
            assert_eq!(memory.len(), 1);
            receipt.refund();
            let left = memory.decide(&[Charge { cost: 0, ..charge }]).verdicts[0].reset_after;
            assert_eq!(left, 0, "{policy:?}");
            assert_eq!(refunds.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn charge_after_other_refunds_is_refunded_in_full() {
        for policy in policies() {
            let memory = Arc::new(MemoryStore::new(10, Clock::manual(Arc::new(AtomicU64::new(1000)))));
            let (charge, store) = (charge(policy.spec().unwrap()), Store::Memory(Arc::clone(&memory)));
            let make = || memory.decide(std::slice::from_ref(&charge)).verdicts[0];
            let left = || memory.decide(&[Charge { cost: 0, ..charge.clone() }]).verdicts[0].reset_after;
            for verdict in [make(), make()] {
                memory.refund(&charge.key, &charge.spec, charge.cost, Some(verdict.charge_id));
            }
            let (before, last) = (left(), make());
            MemoryReceipt::of(&charge, &last, &store).unwrap().refund();
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
        let receipt = MemoryReceipt::of(&charge, &make(), &store).unwrap();
        time.fetch_add(HOUR.as_micros() as u64, Ordering::SeqCst);
        assert_eq!(make().remaining, 8);
        receipt.refund();
        assert_eq!(make().remaining, 6);
    }

    #[test]
    fn charges_are_replaced_by_what_was_used() {
        let settled = policies().map(|policy| {
            let memory = memory();
            let (charge, store) = (charge(policy.spec().unwrap()), Store::Memory(Arc::clone(&memory)));
            let peek = || memory.decide(&[Charge { cost: 0, ..charge.clone() }]).verdicts[0];
            let has_used = |used| assert_eq!(peek().remaining, peek().limit - used, "{policy:?}");
            let receipt = || {
                let verdict = memory.decide(std::slice::from_ref(&charge)).verdicts[0];
                MemoryReceipt::of(&charge, &verdict, &store).unwrap()
            };
            let first = receipt();
            if !first.can_settle() || peek().limit < 7 {
                return false;
            }
            first.settle(2);
            has_used(2);
            receipt().settle(0);
            has_used(2);
            receipt().settle(5);
            has_used(7);
            true
        });
        // All but the two queues, and the bucket with three permits.
        assert_eq!(settled.iter().filter(|is_settled| !**is_settled).count(), 3);
    }

    #[test]
    fn nothing_is_refunded_once_the_store_is_gone() {
        let memory = memory();
        let (charge, id) = (charge(policies()[0].spec().unwrap()), memory.id());
        let outcome = memory.decide(std::slice::from_ref(&charge));
        let store = Store::Memory(memory);
        let receipt = MemoryReceipt::of(&charge, &outcome.verdicts[0], &store).unwrap();
        assert!(MemoryStore::by_id(id).is_some());
        drop(store);
        assert!(MemoryStore::by_id(id).is_none());
        receipt.refund();
    }

    #[test]
    fn uncharged_calls_have_no_receipt() {
        let memory = memory();
        let free = Charge { cost: 0, ..charge(policies()[0].spec().unwrap()) };
        let never = Charge { cost: 11, ..free.clone() };
        for charge in [free, never] {
            let outcome = memory.decide(std::slice::from_ref(&charge));
            let store = Store::Memory(Arc::clone(&memory));
            assert!(MemoryReceipt::of(&charge, &outcome.verdicts[0], &store).is_none());
        }
    }
}
