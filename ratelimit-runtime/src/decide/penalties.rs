//! Penalties: pauses of the keys that a policy refuses, longer each time.

use std::sync::Arc;
use std::time::Duration;

use super::acquire;
use super::acquired::DecidedRequest;
use super::backend::Backend;
use super::request::{AcquireRequest, RequestedPolicy};
use crate::algorithm::AlgorithmSpec;
use crate::key::Key;
use crate::store::decided_by::DecidedBy;
use crate::store::{Charge, MemoryStore, Outcome, Store};

impl AcquireRequest {
    /// Returns the policies whose keys a refusal may penalize, having waited for so long: those whose own numbers refuse the call, and
    /// not only for now. The store decides, as it knows what has happened meanwhile.
    fn penalizing(&self, outcome: &Outcome, waited: Duration) -> impl Iterator<Item = &RequestedPolicy> {
        let is_refused = move |policy: &&RequestedPolicy| {
            let (charge, verdict) = (&self.charges()[policy.charge], &outcome.verdicts[policy.charge]);
            !policy.definition.attribute.penalty.is_empty()
                && !charge.shadow
                && !verdict.admitted
                && verdict.retry_after.is_some_and(|after| !self.may_wait_for(policy.charge, waited, after))
                && outcome.pause(policy.charge).is_none_or(|pause| pause.counts_refusals(outcome.now))
        };
        let policies = if outcome.admitted { &[] } else { self.policies() };
        policies.iter().filter(is_refused)
    }
}

impl Backend {
    /// Pauses the keys that a refusal in process may penalize. Decides again if there are any.
    pub(super) fn penalize_at_once(
        &self,
        request: &mut AcquireRequest,
        outcome: &mut Outcome,
        (memory, source): (&MemoryStore, DecidedBy),
        waited: Duration,
    ) {
        let mut asks_again = false;
        for policy in request.penalizing(outcome, waited) {
            let (key, spec, steps) = penalized(request, policy);
            self.report_penalty(request, policy, memory.penalize(key, spec, steps), source);
            // Without a step as well: a refusal at the same time may have paused the key.
            asks_again = true;
        }
        if asks_again {
            request.forbid_reservations();
            *outcome = memory.decide(request.charges());
        }
    }

    /// The same of a request that was decided in process, by itself.
    pub(super) fn penalize_decided(&self, mut decided: DecidedRequest) -> DecidedRequest {
        let DecidedRequest { request, outcome, waited, source, .. } = &mut decided;
        if let Some(Store::Memory(memory)) = self.charged_store(*source)
            && request.penalizing(outcome, *waited).next().is_some()
        {
            self.penalize_at_once(Arc::make_mut(request), outcome, (memory, *source), *waited);
        }
        decided
    }

    /// Whether a refusal by Redis may penalize a key.
    pub(super) fn may_penalize(&self, decided: &DecidedRequest) -> bool {
        let is_remote = matches!(self.charged_store(decided.source), Some(Store::Redis(_)));
        is_remote && decided.request.penalizing(&decided.outcome, decided.waited).next().is_some()
    }

    /// Pauses the keys that a refusal by Redis may penalize. Asks again if there are any. If Redis fails meanwhile, the refusal stands.
    pub(super) async fn penalize(self: Arc<Self>, decided: DecidedRequest) -> DecidedRequest {
        let (Some(endpoint), source) = (self.primary(), decided.source) else { return decided };
        let mut asks_again = false;
        for policy in decided.request.penalizing(&decided.outcome, decided.waited) {
            let (key, spec, steps) = penalized(&decided.request, policy);
            match endpoint.store.penalize(key, spec, steps).await {
                Ok(step) => {
                    self.report_penalty(&decided.request, policy, step, source);
                    asks_again = true;
                }
                Err(error) => policy.definition.log_failed_pause(&error),
            }
        }
        if !asks_again {
            return decided;
        }
        match acquire::decide_anew(Arc::clone(&decided.request), endpoint).await {
            Ok(again) => DecidedRequest { waited: decided.waited, ..again },
            Err(_) => decided,
        }
    }

    /// Tells observers and the log of a penalty, if the refusal was one.
    fn report_penalty(
        &self,
        request: &AcquireRequest,
        policy: &RequestedPolicy,
        step: Option<u64>,
        source: DecidedBy,
    ) {
        let Some(step) = step else { return };
        let steps = policy.definition.attribute.penalty;
        let micros = usize::try_from(step).ok().and_then(|step| steps.get(step.checked_sub(1)?));
        let duration = Duration::from_micros(micros.copied().unwrap_or(0));
        policy.definition.log_penalty(duration, step);
        if let Some(observers) = self.observers() {
            let parts = request.parts_of(policy);
            observers.paused(&policy.definition, false, Some(source), parts, duration);
        }
    }
}

fn penalized<'a>(
    request: &'a AcquireRequest,
    policy: &RequestedPolicy,
) -> (&'a Key, &'a AlgorithmSpec, &'static [u64]) {
    let Charge { key, spec, .. } = &request.charges()[policy.charge];
    (key, spec, policy.definition.attribute.penalty)
}
