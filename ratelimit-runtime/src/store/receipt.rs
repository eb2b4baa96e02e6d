//! Receipts for charges.

use std::sync::Arc;

use tokio::runtime::Handle;

use super::charge::Charge;
use super::correction::{Corrected, Correction};
use super::{MemoryStore, Store};
use crate::algorithm::{ChargeId, Verdict};
use crate::store::error::StoreError;

/// Gives charges back, once.
#[derive(Debug)]
pub(crate) struct Receipt {
    store: Store,
    charges: Vec<(Charge, ChargeId)>,
    /// The same charges, as far as they were mirrored.
    mirrored: Option<Mirrored>,
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

    /// Returns the charge at this index of the decision alone.
    pub(crate) fn only(&self, index: usize) -> Self {
        let charges = self.charges.iter().filter(|(of, ..)| *of == index).cloned().collect();
        Mirrored { memory: Arc::clone(&self.memory), charges }
    }

    fn refund(&self) {
        for (_, Charge { key, spec, cost, .. }, charge_id) in &self.charges {
            self.memory.refund(key, spec, *cost, Some(*charge_id));
        }
    }
}

impl Receipt {
    /// The receipt for charges of an admitted decision, given their verdicts.
    pub(crate) fn new<'v>(store: Store, charges: impl IntoIterator<Item = (Charge, &'v Verdict)>) -> Self {
        let charges = charges.into_iter();
        let mut charged = Vec::with_capacity(charges.size_hint().1.unwrap_or(0));
        let made = charges.filter(|(charge, verdict)| charge.is_made(verdict));
        charged.extend(made.map(|(charge, verdict)| (charge, verdict.charge_id)));
        Receipt { store, charges: charged, mirrored: None }
    }

    /// Refunds these as well.
    pub(crate) fn with_mirrored(self, mirrored: Option<Mirrored>) -> Self {
        Receipt { mirrored, ..self }
    }

    /// Returns what was charged, in the order of the decision.
    pub(crate) fn charged(&self) -> &[(Charge, ChargeId)] {
        &self.charges
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
        let (mut store, mut refunds) = (None, Vec::new());
        for receipt in receipts {
            receipt.mirrored.iter().for_each(Mirrored::refund);
            refunds.extend(receipt.refunds());
            store = Some(receipt.store);
        }
        match store {
            Some(store) => store.correct(runtime, refunds, done),
            None => done(Ok(Corrected::Whole)),
        }
    }

    fn refunds(&self) -> impl Iterator<Item = Correction> {
        self.charges.iter().map(|(Charge { key, spec, cost, .. }, charge_id)| {
            Correction::refund(key.clone(), *spec, *cost, Some(*charge_id))
        })
    }
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

    #[tokio::test]
    async fn uncharged_shadows_are_not_refunded() {
        let store = Arc::new(MemoryStore::new(10, Clock::process()));
        let spec = Policy::from(FixedWindow::new(1, Duration::from_secs(60))).spec().unwrap();
        let charge = |key: &str, shadow| Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow };
        assert!(store.decide(&[charge("full", false)]).admitted);

        let list = vec![charge("full", true), charge("required", false), charge("with room", true)];
        let outcome = store.decide(&list);
        let receipt =
            Receipt::new(Store::Memory(Arc::clone(&store)), list.into_iter().zip(&outcome.verdicts));
        receipt.refund().await.unwrap();
        let admits = |key| store.decide(&[charge(key, false)]).admitted;
        assert_eq!(["full", "required", "with room"].map(admits), [false, true, true]);
    }
}
