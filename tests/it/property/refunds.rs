//! Refunds, settlements and debts, in all stores and the model.

use super::schedule::{Refund, Request, TestKey};
use super::{Charged, Run};
use crate::support::test_store::absolute;

impl Run<'_> {
    /// Returns the key if it may have been written.
    pub(super) async fn refund(&mut self, at: i64, refund: Refund) -> Result<Option<usize>, String> {
        match refund {
            Refund::Unchecked(request) => self.give_back(at, request, request.cost, None).await,
            Refund::Debt(request) => Ok(self.charge_debt(at, request, request.cost).await),
            Refund::Receipt(index) => {
                let charged = self.take_receipt(index);
                self.give_back(at, charged.request, charged.request.cost, Some(charged)).await
            }
            // A call has used nothing before it starts.
            Refund::Settlement(index, ..) if self.is_waiting(index, at) => {
                let charged = self.take_receipt(index);
                self.give_back(at, charged.request, charged.request.cost, Some(charged)).await
            }
            Refund::Settlement(index, _, more) if more > 0 => {
                let Charged { request, .. } = self.take_receipt(index);
                Ok(self.charge_debt(at, request, more).await)
            }
            Refund::Settlement(index, quarters, _) => {
                let charged = self.take_receipt(index);
                let Request { key, pair, cost, .. } = charged.request;
                let used = if self.keys[key].pairs[pair].spec.can_owe() { cost / 4 * quarters } else { 0 };
                self.give_back(at, charged.request, cost - used, Some(charged)).await
            }
        }
    }

    fn is_waiting(&self, index: usize, at: i64) -> bool {
        self.receipts[self.receipts.len() - 1 - index].slot > absolute(at)
    }

    fn take_receipt(&mut self, index: usize) -> Charged {
        self.receipts.remove(self.receipts.len() - 1 - index)
    }

    async fn give_back(
        &mut self,
        at: i64,
        request: Request,
        cost: u64,
        charged: Option<Charged>,
    ) -> Result<Option<usize>, String> {
        let TestKey { name, pairs, .. } = &self.keys[request.key];
        let pair = &pairs[request.pair];
        for (i, store) in self.stores.iter().enumerate() {
            let charge_id = charged.as_ref().map(|charged| charged.charge_ids[i]);
            store.refund(name, pair, cost, charge_id).await;
        }
        let receipt = charged.as_ref().map(|charged| charged.receipt);
        let refunded = self.model.refund(absolute(at), name, pair.model, cost.into(), receipt);
        let Some(refunded) = refunded else { return Ok(None) };
        match charged {
            Some(charged) => {
                self.checkers[request.key].refund(charged.id, refunded)?;
                self.pause_checkers[request.key].refund(charged.id, refunded)?;
                self.moved_slots.leave(charged.id);
            }
            None => {
                self.checkers[request.key].disable();
                self.pause_checkers[request.key].refund_without_receipt();
                self.moved_slots.forget(request.key);
            }
        }
        Ok(Some(request.key))
    }

    async fn charge_debt(&mut self, at: i64, request: Request, cost: u64) -> Option<usize> {
        let TestKey { name, pairs, .. } = &self.keys[request.key];
        let pair = &pairs[request.pair];
        if !pair.spec.can_owe() {
            return None;
        }
        for store in self.stores {
            store.debit(name, pair, cost).await;
        }
        self.model.debit(absolute(at), name, pair.model, cost.into());
        self.checkers[request.key].add_debt();
        Some(request.key)
    }
}
