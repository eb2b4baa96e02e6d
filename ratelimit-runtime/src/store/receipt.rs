//! Receipts for charges.

use std::sync::Arc;

use smallvec::SmallVec;
use tokio::runtime::Handle;

use super::charge::Charge;
use super::correction::{Corrected, Correction, Urgency};
use super::hold::Hold;
use super::{MemoryStore, Store};
use crate::algorithm::{ChargeId, Verdict};
use crate::store::error::StoreError;

/// Gives charges back, or replaces them by what was used, once. Holds end with it.
#[derive(Debug)]
pub(crate) struct Receipt {
    /// Those of the charges to semaphores. Dropped before the store that they release permits in.
    holds: Vec<Arc<Hold>>,
    store: Store,
    /// Mostly one.
    charges: SmallVec<[(Charge, ChargeId); 1]>,
    /// The same charges, as far as they were mirrored.
    mirrored: Option<Mirrored>,
    /// What each policy of several was charged.
    shares: Vec<Share>,
}

/// What a policy was charged. Policies of the same key share a charge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Share {
    /// The index of the charge in the decision.
    pub(crate) charge: usize,
    /// Its index among those that were made, if it was.
    pub(crate) made: Option<usize>,
    pub(crate) cost: u64,
}

/// Charges of a decision that were made in process too.
#[derive(Clone, Debug)]
pub(crate) struct Mirrored {
    memory: Arc<MemoryStore>,
    /// With their index in the decision.
    charges: Vec<(usize, Charge, ChargeId)>,
}

impl Mirrored {
    pub(crate) fn new(memory: Arc<MemoryStore>, charges: Vec<(usize, Charge, ChargeId)>) -> Self {
        Mirrored { memory, charges }
    }

    /// Returns the charge at this index of the decision alone, as the only one.
    pub(crate) fn only(&self, index: usize) -> Self {
        let charges = self.charges.iter().filter(|(of, ..)| *of == index);
        let charges = charges.map(|(_, charge, charge_id)| (0, charge.clone(), *charge_id)).collect();
        Mirrored { memory: Arc::clone(&self.memory), charges }
    }

    fn refund(&self) {
        for (_, Charge { key, spec, cost, .. }, charge_id) in &self.charges {
            self.memory.refund(key, spec, *cost, Some(*charge_id));
        }
    }

    /// Gives back what was not used, but no more than was mirrored, and mirrors what was used beyond the charge.
    fn settle(&self, settled: &[Settled]) {
        for (index, charge, charge_id) in &self.charges {
            let Some(&Settled { cost, used, .. }) = settled.get(*index) else { continue };
            let Charge { key, spec, cost: mirrored, .. } = charge;
            match u64::try_from(used - cost) {
                Ok(0) => {}
                Ok(more) => drop(self.memory.mirror(&Charge { cost: more, ..charge.clone() }, true)),
                Err(_) => {
                    let less = u64::try_from(cost - used).map_or(*mirrored, |less| less.min(*mirrored));
                    self.memory.refund(key, spec, less, Some(*charge_id));
                }
            }
        }
    }
}

/// What the charge of a decision cost, and what was used.
#[derive(Clone, Copy, Debug, Default)]
struct Settled {
    /// Where the receipt has the charge, if it was made.
    made: Option<usize>,
    cost: i128,
    used: i128,
}

impl Receipt {
    /// The receipt for charges of an admitted decision, given their verdicts.
    pub(crate) fn new<'v>(store: Store, charges: impl IntoIterator<Item = (Charge, &'v Verdict)>) -> Self {
        let mut made = SmallVec::new();
        for (charge, verdict) in charges {
            if charge.is_made(verdict) {
                made.push((charge, verdict.charge_id));
            }
        }
        let holds = holds(&store, &made);
        Receipt { holds, store, charges: made, mirrored: None, shares: Vec::new() }
    }

    /// Ends these holds as well.
    pub(crate) fn with_holds(mut self, holds: impl IntoIterator<Item = Arc<Hold>>) -> Self {
        self.holds.extend(holds);
        self
    }

    /// Says what each policy of several was charged.
    pub(crate) fn with_shares(self, shares: Vec<Share>) -> Self {
        Receipt { shares, ..self }
    }

    /// Refunds these as well.
    pub(crate) fn with_mirrored(self, mirrored: Option<Mirrored>) -> Self {
        Receipt { mirrored, ..self }
    }

    /// Refunds each charge as far as the store allows. Returns the first error after trying all of them. Once polled, it ends even if
    /// it is dropped.
    pub(crate) async fn refund(&self) -> Result<(), StoreError> {
        self.mirrored.iter().for_each(Mirrored::refund);
        self.store.correct_all(self.refunds().collect()).await
    }

    /// Refunds all charges of these receipts of one store, by a task of this runtime or else the current one, and calls `done` with
    /// the first error.
    pub(crate) fn give_back(
        runtime: Option<&Handle>,
        receipts: impl IntoIterator<Item = Receipt>,
        done: impl FnOnce(Result<Corrected, StoreError>) + Send + 'static,
    ) {
        Receipt::settle_all(runtime, receipts.into_iter().map(|receipt| (receipt, None)), done);
    }

    /// Replaces the charges of these receipts of one store by what was used, or refunds those without a figure, by a task of this
    /// runtime or else the current one, and calls `done` with the result or the first error.
    pub(crate) fn settle_all(
        runtime: Option<&Handle>,
        receipts: impl IntoIterator<Item = (Receipt, Option<u64>)>,
        done: impl FnOnce(Result<Corrected, StoreError>) + Send + 'static,
    ) {
        let (mut store, mut corrections, mut urgency) = (None, Vec::new(), Urgency::Gathered);
        for (receipt, used) in receipts {
            match used {
                Some(used) => corrections.extend(receipt.settlements(&[used])),
                None => {
                    urgency = Urgency::AtOnce;
                    receipt.mirrored.iter().for_each(Mirrored::refund);
                    corrections.extend(receipt.refunds());
                }
            }
            store = Some(receipt.store);
        }
        match store {
            Some(store) => store.correct(runtime, corrections, urgency, done),
            None => done(Ok(Corrected::Whole)),
        }
    }

    /// Replaces what each policy was charged by what it has used, by a task of the current runtime, and calls `done` with the result
    /// or the first error.
    pub(crate) fn settle(
        &self,
        used: &[u64],
        done: impl FnOnce(Result<Corrected, StoreError>) + Send + 'static,
    ) {
        self.store.correct(None, self.settlements(used), Urgency::Gathered, done);
    }

    /// Whether a charge is of a policy that cannot be settled.
    pub(crate) fn has_unsettled(&self) -> bool {
        self.charges.iter().any(|(charge, _)| !charge.spec.can_owe() && !charge.spec.is_semaphore())
    }

    fn refunds(&self) -> impl Iterator<Item = Correction> {
        let refundable = self.charges.iter().filter(|(charge, _)| !charge.spec.is_semaphore());
        refundable.map(|(Charge { key, spec, cost, .. }, charge_id)| {
            Correction::refund(key.clone(), *spec, *cost, Some(*charge_id))
        })
    }

    /// Returns what settles the charges that were made, once those that were mirrored are settled.
    fn settlements(&self, used: &[u64]) -> Vec<Correction> {
        let settled = self.settled(used);
        self.mirrored.iter().for_each(|mirrored| mirrored.settle(&settled));
        let settlement = |&Settled { made, cost, used }: &Settled| {
            let (Charge { key, spec, .. }, charge_id) = self.charges.get(made?)?;
            Correction::settlement(key, spec, (cost, used), *charge_id).filter(|_| spec.can_owe())
        };
        settled.iter().filter_map(settlement).collect()
    }

    /// Returns what each charge of the decision cost, and what was used.
    fn settled(&self, used: &[u64]) -> Vec<Settled> {
        if self.shares.is_empty() {
            let cost = self.charges.first().map_or(0, |(charge, _)| charge.cost);
            let used = used.first().copied().unwrap_or(cost);
            return vec![Settled { made: Some(0), cost: cost.into(), used: used.into() }];
        }
        let mut settled = vec![Settled::default(); self.shares.len()];
        for (Share { charge, made, cost }, used) in self.shares.iter().zip(used) {
            // There are no more charges than policies.
            let Some(of) = settled.get_mut(*charge) else { continue };
            of.made = *made;
            of.cost += i128::from(*cost);
            of.used += i128::from(*used);
        }
        settled
    }
}

/// Returns the holds of these charges in process.
fn holds(store: &Store, charged: &[(Charge, ChargeId)]) -> Vec<Arc<Hold>> {
    let Store::Memory(memory) = store else { return Vec::new() };
    let held = charged.iter().filter(|(charge, _)| charge.spec.is_semaphore());
    held.map(|(charge, charge_id)| memory.hold(0, charge.clone(), *charge_id)).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::base::clock::Clock;
    use crate::key::Key;
    use crate::policy::{FixedWindow, Policy};
    use crate::store::MemoryStore;

    fn memory() -> Arc<MemoryStore> {
        Arc::new(MemoryStore::new(10, Clock::process()))
    }

    fn charge(key: &str, limit: u64, cost: u64) -> Charge {
        let spec = Policy::from(FixedWindow::new(limit, Duration::from_secs(60))).spec().unwrap();
        Charge { key: Key::raw(key), spec, cost, wait: 0, shadow: false }
    }

    fn remaining(store: &MemoryStore, key: &str, limit: u64) -> u64 {
        store.decide(&[charge(key, limit, 0)]).verdicts[0].remaining
    }

    #[tokio::test]
    async fn uncharged_shadows_are_not_corrected() {
        let store = memory();
        let shadow = |key: &str, shadow| Charge { shadow, ..charge(key, 1, 1) };
        assert!(store.decide(&[shadow("full", false)]).admitted);

        let list = vec![shadow("full", true), shadow("required", false), shadow("with room", true)];
        let outcome = store.decide(&list);
        let share = |(charge, made)| Share { charge, made, cost: 1 };
        let receipt =
            Receipt::new(Store::Memory(Arc::clone(&store)), list.into_iter().zip(&outcome.verdicts))
                .with_shares([(0, None), (1, Some(0)), (2, Some(1))].map(share).into());
        receipt.settle(&[0, 1, 0], drop);
        let left =
            |store: &MemoryStore| ["full", "required", "with room"].map(|key| remaining(store, key, 1));
        assert_eq!(left(&store), [0, 0, 1]);
        receipt.refund().await.unwrap();
        assert_eq!(left(&store), [0, 1, 1]);
    }

    #[test]
    fn mirrored_charges_are_settled_as_far_as_they_were_mirrored() {
        for (used, left, mirrored_left) in [(5, 95, 15), (0, 100, 20), (12, 88, 8), (30, 70, 0), (99, 1, 0)] {
            let (store, mirror) = (memory(), memory());
            let outcome = store.decide(&[charge("key", 100, 10)]);
            // The mirror holds a fifth, and has already admitted something itself.
            assert!(mirror.decide(&[charge("key", 20, 10)]).admitted);
            let (mirrored, id) = mirror.mirror(&charge("key", 20, 10), false).unwrap();
            let receipt = Receipt::new(
                Store::Memory(Arc::clone(&store)),
                [(charge("key", 100, 10), &outcome.verdicts[0])],
            );
            mirror.refund(&mirrored.key, &mirrored.spec, 10, None);
            let receipt =
                receipt.with_mirrored(Some(Mirrored::new(Arc::clone(&mirror), vec![(0, mirrored, id)])));
            receipt.settle(&[used], drop);
            assert_eq!((remaining(&store, "key", 100), remaining(&mirror, "key", 20)), (left, mirrored_left));
        }
    }
}
