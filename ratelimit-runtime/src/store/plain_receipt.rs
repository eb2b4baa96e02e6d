//! Receipts for one charge of a bucket or a fixed window in process. They hold numbers only, so that making and dropping one costs
//! nothing.

use super::charge::Charge;
use super::memory::StoreId;
use super::{MemoryStore, Store};
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::{AlgorithmSpec, ChargeId, Verdict};
use crate::key::policy_id::PolicyId;
use crate::key::{Fingerprint, Key, Repr};

/// Gives one charge of a bucket or a fixed window in process back, once. It does not keep the store.
#[derive(Debug)]
pub(crate) struct PlainReceipt {
    store: StoreId,
    fingerprint: Fingerprint,
    policy: PolicyId,
    spec: CompactSpec,
    cost: u64,
    /// These two are the [`ChargeId`], whose level is 0.
    at: u64,
    credited: u64,
}

/// The spec of a continuous bucket that lends nothing, or of a fixed window, in fewer bytes.
///
/// All words, so that a receipt is copied a word at a time: the bytes of smaller fields are slow to read together, right after they
/// were written one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CompactSpec {
    kind: CompactKind,
    /// The interval of a bucket, the limit of a window.
    first: u64,
    /// The capacity of a bucket, the period of a window.
    second: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
enum CompactKind {
    TokenBucket,
    Meter,
    Queue,
    Window,
    AlignedWindow,
}

impl PlainReceipt {
    /// The receipt for a charge of `cost` permits, which is identified by a time only.
    #[inline]
    pub(crate) fn new(
        store: StoreId,
        fingerprint: Fingerprint,
        policy: PolicyId,
        spec: CompactSpec,
        cost: u64,
        at: u64,
    ) -> Self {
        PlainReceipt { store, fingerprint, policy, spec, cost, at, credited: 0 }
    }

    /// The receipt for a charge of an admitted decision, if its policy has such receipts.
    pub(crate) fn of(charge: &Charge, verdict: &Verdict, store: &Store) -> Option<Self> {
        let (Store::Memory(store), Key(Repr::Hash(fingerprint), policy)) = (store, &charge.key) else {
            return None;
        };
        let spec = CompactSpec::of(&charge.spec)?;
        let ChargeId { at, level, credited } = verdict.charge_id;
        debug_assert_eq!(level, 0, "charges of these policies are identified without it");
        charge.is_made(verdict).then(|| {
            let (store, fingerprint, policy, cost) = (store.id(), *fingerprint, *policy, charge.cost);
            PlainReceipt { store, fingerprint, policy, spec, cost, at, credited }
        })
    }

    /// Refunds the charge as far as it still counts. A store that is gone has nothing to refund.
    pub(crate) fn refund(self) {
        let PlainReceipt { store, fingerprint, policy, spec, cost, at, credited } = self;
        let Some(store) = MemoryStore::by_id(store) else { return };
        let key = Key(Repr::Hash(fingerprint), policy);
        store.refund(&key, &spec.spec(), cost, Some(ChargeId { at, level: 0, credited }));
    }
}

impl CompactSpec {
    /// Returns the same spec in fewer bytes, if its charges have such receipts.
    #[inline]
    pub(crate) const fn of(spec: &AlgorithmSpec) -> Option<Self> {
        let (kind, first, second) = match *spec {
            AlgorithmSpec::Gcra(GcraSpec { kind, interval, capacity }) => match kind {
                GcraKind::TokenBucket => (CompactKind::TokenBucket, interval, capacity),
                GcraKind::Meter => (CompactKind::Meter, interval, capacity),
                GcraKind::Queue => (CompactKind::Queue, interval, capacity),
                GcraKind::Borrowing(_) => return None,
            },
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: false }) => {
                (CompactKind::Window, limit, period)
            }
            AlgorithmSpec::FixedWindow(FixedWindowSpec { limit, period, aligned: true }) => {
                (CompactKind::AlignedWindow, limit, period)
            }
            _ => return None,
        };
        Some(CompactSpec { kind, first, second })
    }

    /// Returns the spec that this one is of.
    pub(crate) fn spec(self) -> AlgorithmSpec {
        let CompactSpec { kind, first, second } = self;
        let bucket = |kind| AlgorithmSpec::Gcra(GcraSpec { kind, interval: first, capacity: second });
        let window =
            |aligned| AlgorithmSpec::FixedWindow(FixedWindowSpec { limit: first, period: second, aligned });
        match kind {
            CompactKind::TokenBucket => bucket(GcraKind::TokenBucket),
            CompactKind::Meter => bucket(GcraKind::Meter),
            CompactKind::Queue => bucket(GcraKind::Queue),
            CompactKind::Window => window(false),
            CompactKind::AlignedWindow => window(true),
        }
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

    fn plain() -> [Policy; 5] {
        [
            TokenBucket::per_second(3).burst(10).into(),
            LeakyBucket::draining(10, HOUR).into(),
            LeakyBucket::draining(10, HOUR).queue().into(),
            FixedWindow::new(10, HOUR).into(),
            FixedWindow::new(10, HOUR).aligned().into(),
        ]
    }

    fn memory() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(10, Clock::manual(Arc::new(AtomicU64::new(0)))))
    }

    fn charge(spec: AlgorithmSpec) -> Charge {
        let key = Key(Repr::Hash(Fingerprint([1, 2])), PolicyId::default());
        Charge { key, spec, cost: 2, wait: 0, shadow: false }
    }

    #[test]
    fn specs_keep_all_numbers() {
        for policy in plain() {
            let spec = policy.spec().unwrap();
            assert_eq!(CompactSpec::of(&spec).unwrap().spec(), spec);
        }
        for policy in [
            TokenBucket::per_second(3).borrow().into(),
            TokenBucket::per_second(3).adjustable().into(),
            Policy::from(SlidingWindow::new(10, HOUR)),
        ] {
            assert_eq!(CompactSpec::of(&policy.spec().unwrap()), None);
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
            assert!(memory.is_empty(), "{policy:?}");
            assert_eq!(refunds.load(Ordering::Relaxed), 1);
        }
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
