//! What becomes of a request: a decision, or a failed store.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::decide::decision::{Decision, PolicyDecision, SinglePolicy};
use crate::decide::request::{AcquireRequest, RequestedPolicy};
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
use crate::store::{MemoryReceipt, MemoryStore, Mirrored, Outcome, Receipt, Share, Store, Verdict, Waiter};

/// The outcome of a request, to be converted to what the caller sees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Acquired<'a> {
    pub(crate) request: &'a AcquireRequest,
    pub(crate) outcome: &'a Outcome,
    pub(crate) waited: Duration,
    pub(crate) source: DecidedBy,
    pub(crate) mirrored: Option<&'a Mirrored>,
}

/// A request that was decided, or the one that failed.
pub(crate) type AcquireResult = Result<DecidedRequest, Box<FailedRequest>>;

/// A decided request.
#[derive(Debug)]
pub(crate) struct DecidedRequest {
    pub(crate) request: Arc<AcquireRequest>,
    pub(crate) outcome: Box<Outcome>,
    pub(crate) waited: Duration,
    pub(crate) source: DecidedBy,
    /// What was charged in process as well.
    pub(crate) mirrored: Option<Box<Mirrored>>,
}

/// A request that the store did not decide, kept for whatever decides it instead.
#[derive(Debug)]
pub(crate) struct FailedRequest {
    pub(crate) error: StoreError,
    pub(crate) request: Arc<AcquireRequest>,
    /// When the call was made, if it may wait.
    pub(crate) since: Option<Instant>,
    /// Whether the call has waited in a queue.
    pub(crate) queued: bool,
}

impl<'a> Acquired<'a> {
    /// The outcome of a request that was decided without waiting.
    pub(crate) fn at_once(request: &'a AcquireRequest, outcome: &'a Outcome, source: DecidedBy) -> Self {
        Acquired { request, outcome, waited: Duration::ZERO, source, mirrored: None }
    }

    /// Converts it to what a limiter returns. `store` is the store that was charged, if any was.
    pub(crate) fn into_decision(self, store: Option<&Store>) -> Decision {
        let decision = self.decision();
        let Some(store) = store.filter(|_| self.is_charged()) else { return decision };
        match self.memory_receipt(store) {
            receipt @ Some(_) => decision.with_memory_receipt(receipt, || None),
            None => decision.with_receipt(self.receipt(store)),
        }
    }

    /// Returns what a limiter returns, without a receipt for what was charged.
    fn decision(&self) -> Decision {
        let mut decision = self.verdicts();
        if !self.outcome.paused.is_empty()
            && let Some(policy) = self.request.policies().get(decision.reported())
            && let Some(pause) = self.outcome.pause(policy.charge)
        {
            decision = decision.with_pause(pause, self.outcome.now);
        }
        if self.outcome.admitted || !self.request.tells_keys {
            return decision;
        }
        let policy = &self.request.policies()[decision.reported()];
        decision.with_key(self.request.parts_of(policy))
    }

    fn verdicts(&self) -> Decision {
        if let Some(policy) = self.single() {
            return Decision::of_one(policy, self.source, self.waited, None);
        }
        if self.request.policies().is_empty() {
            // All are shadows that could not be decided.
            return Decision::unlimited();
        }
        let decided = |policy: &RequestedPolicy| {
            let (name, algorithm) = (policy.definition.name.to_shared(), policy.definition.algorithm);
            PolicyDecision::new(name, algorithm, self.is_shadow(policy), self.verdict(policy))
        };
        let policies = self.request.policies().iter().map(decided).collect();
        Decision::new(policies, self.source, self.waited)
    }

    /// Returns what the policy said, if it is the only one, can refuse, and its name needs no count.
    fn single(&self) -> Option<SinglePolicy> {
        match self.request.policies() {
            [policy] if !self.is_shadow(policy) => {
                let (name, algorithm) = (policy.definition.static_name()?, policy.definition.algorithm);
                Some(SinglePolicy::new(name, algorithm, self.verdict(policy)))
            }
            _ => None,
        }
    }

    pub(crate) fn verdict(&self, policy: &RequestedPolicy) -> &Verdict {
        &self.outcome.verdicts[policy.charge]
    }

    pub(crate) fn is_shadow(&self, policy: &RequestedPolicy) -> bool {
        self.request.charges()[policy.charge].shadow
    }

    /// Returns why a shadow policy could not be decided, if it could not.
    pub(crate) fn shadow_failure(&self, policy: &RequestedPolicy) -> Option<StoreError> {
        let (_, problem) = self.outcome.failed.iter().find(|(charge, _)| *charge == policy.charge)?;
        Some(StoreError::transient(problem))
    }

    fn is_charged(&self) -> bool {
        self.outcome.admitted && self.request.has_cost()
    }

    /// Returns the receipt for all that was charged, if it is a single charge of one policy, in process.
    fn memory_receipt(&self, store: &Store) -> Option<MemoryReceipt> {
        match self.request.policies() {
            [policy] if self.request.charges().len() == 1 => self.memory_receipt_of(policy, store),
            _ => None,
        }
    }

    /// Returns the receipt for the charge of one policy, if it was made in process, and is all that there is to keep.
    pub(crate) fn memory_receipt_of(&self, policy: &RequestedPolicy, store: &Store) -> Option<MemoryReceipt> {
        if self.mirrored.is_some() || !self.outcome.holds.is_empty() {
            return None;
        }
        MemoryReceipt::of(&self.request.charges()[policy.charge], self.verdict(policy), store)
    }

    /// Returns the receipt for all that was charged.
    pub(crate) fn receipt(&self, store: &Store) -> Receipt {
        let charges = self.request.charges().iter().cloned().zip(&self.outcome.verdicts);
        Receipt::new(store.clone(), charges.filter(|_| self.outcome.admitted))
            .with_holds(self.outcome.holds.iter().cloned())
            .with_shares(self.shares())
            .with_mirrored(self.mirrored.cloned())
    }

    /// Returns what each policy of several was charged.
    fn shares(&self) -> Vec<Share> {
        let policies = self.request.policies();
        if policies.len() < 2 {
            return Vec::new();
        }
        let charges = self.request.charges().iter().zip(&self.outcome.verdicts);
        let made: Vec<bool> = charges.map(|(charge, verdict)| charge.is_made(verdict)).collect();
        let share = |&RequestedPolicy { charge, cost, .. }: &RequestedPolicy| Share {
            charge,
            made: made[charge].then(|| made[..charge].iter().filter(|made| **made).count()),
            cost,
        };
        policies.iter().map(share).collect()
    }

    /// Returns the receipt for the charge of one policy.
    pub(crate) fn receipt_of(&self, policy: &RequestedPolicy, store: &Store) -> Receipt {
        let charge = self.request.charges()[policy.charge].clone();
        let mirrored = self.mirrored.map(|mirrored| mirrored.only(policy.charge));
        let holds = self.outcome.holds.iter().filter(|hold| hold.charge() == policy.charge);
        Receipt::new(store.clone(), [(charge, self.verdict(policy))])
            .with_holds(holds.cloned())
            .with_mirrored(mirrored)
    }
}

impl DecidedRequest {
    /// A request that was decided without waiting.
    pub(crate) fn new(request: Arc<AcquireRequest>, outcome: Box<Outcome>, source: DecidedBy) -> Self {
        DecidedRequest { request, outcome, waited: Duration::ZERO, source, mirrored: None }
    }

    /// Decides a request in process, without waiting.
    pub(crate) fn in_memory(request: Arc<AcquireRequest>, memory: &MemoryStore) -> Self {
        let outcome = Box::new(memory.decide(request.charges()));
        DecidedRequest::new(request, outcome, DecidedBy::Memory)
    }

    pub(crate) fn acquired(&self) -> Acquired<'_> {
        let DecidedRequest { request, outcome, waited, source, mirrored } = self;
        Acquired { request, outcome, waited: *waited, source: *source, mirrored: mirrored.as_deref() }
    }

    /// Converts it to what a limiter returns. `store` is the store that was charged, if any was.
    pub(crate) fn into_decision(self, store: Option<&Store>) -> Decision {
        let acquired = self.acquired();
        let decision = acquired.decision();
        let Some(store) = store.filter(|_| acquired.is_charged()) else { return decision };
        match acquired.memory_receipt(store) {
            receipt @ Some(_) => decision.with_memory_receipt(receipt, || None),
            None => decision.with_receipt(self.into_receipt(store)),
        }
    }

    /// Converts it to the receipt for all that was charged.
    pub(crate) fn into_receipt(self, store: &Store) -> Receipt {
        let shares = self.acquired().shares();
        let DecidedRequest { mut request, outcome, mirrored, .. } = self;
        let charges = Arc::make_mut(&mut request).take_charges().zip(&outcome.verdicts);
        Receipt::new(store.clone(), charges.filter(|_| outcome.admitted))
            .with_holds(outcome.holds.iter().cloned())
            .with_shares(shares)
            .with_mirrored(mirrored.map(|it| *it))
    }

    /// Adopts the charge ids of a waiter whose reservations may have moved up.
    pub(crate) fn adopt_charge_ids(&mut self, waiter: &Waiter) {
        let charged = self.request.charges().iter().zip(&mut self.outcome.verdicts);
        let charged = charged.filter(|(charge, verdict)| charge.is_made(verdict));
        charged
            .enumerate()
            .for_each(|(index, (_, verdict))| verdict.charge_id = waiter.slot(index).charge_id);
    }
}

impl FailedRequest {
    pub(crate) fn new(error: StoreError, request: Arc<AcquireRequest>) -> Box<Self> {
        Box::new(FailedRequest { error, request, since: None, queued: false })
    }

    /// The failed request of a call that was made at `since` and may wait.
    pub(crate) fn of_waiting_call(mut self: Box<Self>, since: Instant, queued: bool) -> Box<Self> {
        (self.since, self.queued) = (Some(since), queued);
        self
    }
}
