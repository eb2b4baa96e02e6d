//! Receipts for charges.

use super::Store;
use super::charge::Charge;
use crate::algorithm::{ChargeId, Verdict};
use crate::error::store::StoreError;
use crate::log::log;

/// Gives charges back, once.
#[derive(Debug)]
pub(crate) struct Receipt {
    store: Store,
    charges: Vec<(Charge, ChargeId)>,
}

impl Receipt {
    /// The receipt for charges of an admitted decision, given their verdicts.
    pub(crate) fn new<'v>(store: Store, charges: impl IntoIterator<Item = (Charge, &'v Verdict)>) -> Self {
        let charged = charges.into_iter().filter(|(charge, verdict)| charge.is_made(verdict));
        Receipt { store, charges: charged.map(|(charge, verdict)| (charge, verdict.charge_id)).collect() }
    }

    /// Returns what was charged, in the order of the decision.
    pub(crate) fn charged(&self) -> &[(Charge, ChargeId)] {
        &self.charges
    }

    /// Refunds the charges of a dropped call, and logs an error.
    pub(crate) async fn give_back(self) {
        if let Err(error) = self.refund().await {
            let error = &error as &(dyn std::error::Error + 'static);
            log!(WARN, error, "failed to refund a dropped call");
        }
    }

    /// Refunds each charge as far as the store allows. Returns the first error after trying all of them.
    pub(crate) async fn refund(self) -> Result<(), StoreError> {
        let mut result = Ok(());
        for (Charge { key, spec, cost, .. }, charge_id) in self.charges {
            result = result.and(self.store.refund(&key, &spec, cost, Some(charge_id)).await);
        }
        result
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::clock::Clock;
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
