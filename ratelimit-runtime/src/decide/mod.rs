//! One decision. Every call, of an attribute or of a limiter, becomes [`Charges`], and [`Backend::decide`] decides them: with what is
//! at hand, or by a request that travels.

pub(crate) mod acquire;
pub(crate) mod acquired;
pub(crate) mod attachment;
pub(crate) mod backend;
mod caller;
pub(crate) mod charges;
pub(crate) mod decision;
pub(crate) mod definition;
mod endpoint;
pub(crate) mod error;
mod few;
pub(crate) mod health;
mod notifying;
pub(crate) mod observation;
mod observing;
pub(crate) mod on_store_error;
#[cfg(feature = "overrides")]
mod overridden;
#[cfg(not(feature = "overrides"))]
#[path = "overridden_disabled.rs"]
mod overridden;
mod overridden_key;
#[cfg(feature = "overrides")]
#[doc(hidden)]
pub mod overrides;
#[cfg(not(feature = "overrides"))]
#[path = "overrides_disabled.rs"]
pub(crate) mod overrides;
pub(crate) mod pausing;
mod penalties;
mod plain;
pub(crate) mod request;
mod single;
mod taken_marks;
mod wait_queues;
mod waiter_limit;

use std::sync::Arc;
use std::time::Duration;

use self::acquired::{AcquireResult, Acquired, FailedRequest};
use self::backend::Backend;
use self::backend::failover::PendingRequest;
pub(crate) use self::caller::{Caller, FewDecision};
use self::charges::{Blocked, Charges, Failure, PolicyCharge};
use self::decision::{Decision, SinglePolicy};
use self::definition::ChargeNumbers;
use self::endpoint::Endpoint;
use self::error::Error;
use self::request::AcquireRequest;
pub(crate) use self::single::SingleDecision;
use crate::algorithm::Verdict;
use crate::base::coop::count_refusal;
use crate::key::missing_key::MissingKey;
use crate::key::{Fingerprint, KeyParts, PartsOfKey};
use crate::store::decided_by::DecidedBy;
use crate::store::{Charge, Hold, MemoryStore, SingleOutcome, Store};

impl Backend {
    /// Decides a call. Returns what its caller makes of that, or the request that has to be awaited.
    #[inline(always)]
    pub(crate) fn decide<'b, C: Caller>(
        self: &'b Arc<Self>,
        charges: &mut Charges<'_>,
        caller: &C,
    ) -> Result<C::Decision, PendingRequest<'b>> {
        match self.decide_plainly(charges, caller) {
            Some(decision) => Ok(decision),
            None => self.decide_others(charges, caller),
        }
    }

    /// Decides a call that [`decide_plainly`](Self::decide_plainly) does not decide.
    #[inline(always)]
    pub(crate) fn decide_others<'b, C: Caller>(
        self: &'b Arc<Self>,
        charges: &mut Charges<'_>,
        caller: &C,
    ) -> Result<C::Decision, PendingRequest<'b>> {
        match self.decide_at_hand(charges, caller) {
            Some(decision) => Ok(decision),
            None => self.decide_any(charges, caller),
        }
    }

    /// Decides a call that [`decide_plainly`](Self::decide_plainly) does not decide, without a request if that is possible. Completes
    /// the keys of its charges.
    #[inline(always)]
    pub(crate) fn decide_at_hand<C: Caller>(
        &self,
        charges: &mut Charges<'_>,
        caller: &C,
    ) -> Option<C::Decision> {
        if let Some(PolicyCharge { numbers: ChargeNumbers::Computed(..), .. }) = charges.only()
            && let Some(decision) = self.decide_computed(charges, caller)
        {
            return Some(decision);
        }
        // What operators have changed for a key is looked up once the key is complete.
        let is_by_key = charges.are_by_key();
        if !is_by_key && let Some(decision) = self.decide_alone(charges, caller) {
            return Some(decision);
        }
        self.close(charges);
        if let Some(blocked) = charges.take_blocked().filter(Blocked::refuses)
            && let Some(store) = self.store()
        {
            return Some(self.refuse(&blocked, store.source(), charges.parts_of(&blocked.charge), caller));
        }
        if is_by_key && let Some(decision) = self.decide_alone(charges, caller) {
            return Some(decision);
        }
        self.decide_few(charges, caller)
    }

    /// Looks at what charges without cost find, even if a policy is turned off. Returns the request, if it has to be awaited.
    pub(crate) fn peek<'b>(
        self: &'b Arc<Self>,
        charges: &mut Charges<'_>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'b>> {
        self.close(charges);
        if let Some(blocked) = charges.take_blocked() {
            let source = self.store().map_or(DecidedBy::Skipped, Store::source);
            return Ok(Ok(blocked.decision(self.overrides(), source)));
        }
        if let Some((charge, key)) = charges.single()
            && let Some(decision) = self.peek_single(charge, key)
        {
            return Ok(Ok(decision));
        }
        let mut request = match self.request(charges) {
            Ok(request) => request,
            Err(error) => return Ok(Err(error)),
        };
        let Some(endpoint) = self.primary() else { return Ok(Ok(skipped(&request))) };
        match acquire::decide_at_once(&mut request, endpoint) {
            Some(outcome) => {
                let acquired = Acquired::at_once(&request, &outcome, endpoint.store.source());
                Ok(Ok(acquired.into_decision(None)))
            }
            None => Err(PendingRequest::new(self, endpoint, Arc::new(request))),
        }
    }

    /// Looks at what a single charge without cost finds in process.
    #[inline]
    pub(crate) fn peek_single(&self, charge: &PolicyCharge<'_>, key: Fingerprint) -> Option<Decision> {
        let memory = self.memory()?;
        let definition = charge.definition.get();
        let name = definition.static_name().filter(|_| charge.cost == 0 && !charge.shadow)?;
        let plain = charge.plain();
        let verdict =
            match plain.and_then(|plain| Some((plain, memory.peek_plain(key, definition.id, plain)?))) {
                Some((plain, (now, snapshot))) => plain.peek(charge.numbers.limit(plain), snapshot, now),
                None => memory.peek(&charge.in_process(key))?,
            };
        let policy = SinglePolicy::new(name, definition.algorithm, &verdict);
        Some(Decision::of_one(policy, DecidedBy::Memory, Duration::ZERO, None))
    }

    /// Returns a single charge with its whole key, or why it is not valid.
    pub(crate) fn charge(&self, charges: &mut Charges<'_>) -> Result<Charge, Error> {
        self.request(charges)?.take_charges().next().ok_or_else(|| MissingKey::Part.into())
    }

    /// Decides a single charge in process, if nothing has to be awaited, as [`decide`](Self::decide) does.
    #[inline(always)]
    pub(crate) fn decide_one<C: Caller>(
        &self,
        charge: &PolicyCharge<'_>,
        key: Fingerprint,
        parts: &KeyParts,
        caller: &C,
    ) -> Option<C::Decision> {
        let memory = self.memory()?;
        if let Some(spec) = charge.lock_free()
            && let Some(decision) =
                self.decide_plain((memory, memory.now()), (charge, key, spec), || parts.all(), caller)
        {
            return Some(decision);
        }
        self.decide_single(memory, (charge, key, parts.all()), caller)
    }

    /// Returns the request for charges without cost, or why one is not valid.
    fn request(&self, charges: &mut Charges<'_>) -> Result<AcquireRequest, Error> {
        self.close(charges);
        let request = self.filled(charges);
        match charges.take_failures().into_iter().next() {
            Some(failure) => Err(failure.error),
            None => Ok(request),
        }
    }

    /// Returns the request for charges whose keys are complete.
    fn filled(&self, charges: &mut Charges<'_>) -> AcquireRequest {
        let mut request = AcquireRequest::default();
        request.fill(charges, |charge, parts| self.complete(charge, parts));
        request
    }

    /// Completes the keys of charges, and applies what operators have changed for these.
    #[inline]
    pub(crate) fn close(&self, charges: &mut Charges<'_>) {
        charges.close();
        charges.look_up(self.overrides());
    }

    /// Refuses a call whose key is blocked.
    #[cold]
    fn refuse<C: Caller>(
        &self,
        blocked: &Blocked<'_>,
        source: DecidedBy,
        parts: PartsOfKey<'_>,
        caller: &C,
    ) -> C::Decision {
        let mut decision = blocked.decision(self.overrides(), source);
        if let Some(observers) = self.observers() {
            observers.single(&blocked.charge, &blocked.verdict(self.overrides()), source, parts);
            decision = decision.with_key(parts);
        }
        caller.failed(blocked.charge.definition.attribute.index, decision.into_error())
    }

    /// Finishes the decision about a single charge: reports it, and makes what the caller sees. `Some`, so that nobody who passes it
    /// on has to move it.
    #[inline(never)]
    fn finish_single<'a, C: Caller>(
        &'a self,
        mut decision: SingleDecision<'a>,
        parts: PartsOfKey<'a>,
        caller: &C,
    ) -> Option<C::Decision> {
        if let Some(observers) = self.observers() {
            decision.observe(observers, parts);
            if decision.charge.definition.attribute.notify_at.is_some()
                && let Some(verdict) = &decision.state()
            {
                self.notify_one(decision.charge, verdict, parts);
            }
        }
        if decision.charge.shadow && !decision.admitted {
            decision.charge.definition.log_shadow_refusal();
        }
        Some(caller.single(decision))
    }

    /// Decides a call with any charges, whose keys are complete. A single one has been tried alone before.
    #[inline(never)]
    pub(crate) fn decide_any<'b, C: Caller>(
        self: &'b Arc<Self>,
        charges: &mut Charges<'_>,
        caller: &C,
    ) -> Result<C::Decision, PendingRequest<'b>> {
        if let Some(admitted) = caller.admitted()
            && (charges.is_empty() || self.admits_list(charges))
        {
            return Ok(admitted);
        }
        if let Some((charge, key)) = charges.single()
            && let Some(verdict) = &self.known_remotely(charge, key)
            && let known = SingleDecision::known(charge, key, verdict)
            && let Some(decision) = self.finish_single(known, charges.parts_of(charge), caller)
        {
            return Ok(decision);
        }
        let Some(endpoint) = self.primary() else { return Ok(skip(&self.filled(charges), caller)) };
        if let Store::Redis(_) = endpoint.store {
            // Made where it stays: it is large, and mostly sent.
            let mut request = Arc::default();
            let decision = self.decide_request(Arc::make_mut(&mut request), charges, endpoint, caller);
            return decision.ok_or_else(|| PendingRequest::new(self, endpoint, request));
        }
        // Mostly decided at once, and then nothing is allocated.
        let mut request = AcquireRequest::default();
        let decision = self.decide_request(&mut request, charges, endpoint, caller);
        decision.ok_or_else(|| PendingRequest::new(self, endpoint, Arc::new(request)))
    }

    /// Fills an empty request with these charges, and decides it unless it has to be awaited.
    fn decide_request<C: Caller>(
        &self,
        request: &mut AcquireRequest,
        charges: &mut Charges<'_>,
        endpoint: &Arc<Endpoint>,
        caller: &C,
    ) -> Option<C::Decision> {
        request.fill(charges, |charge, parts| self.complete(charge, parts));
        request.tells_keys = self.observers().is_some();
        if let Some(refusal) = self.report_failures(charges, caller) {
            return Some(refusal);
        }
        if !request.has_cost() {
            return Some(skip(request, caller));
        }
        let mut outcome = acquire::decide_at_once(request, endpoint)?;
        let source = endpoint.store.source();
        if let Store::Memory(memory) = &endpoint.store {
            self.penalize_at_once(request, &mut outcome, (memory, source), Duration::ZERO);
        }
        self.mirror(request, &outcome);
        let observed = self.report(&Acquired::at_once(request, &outcome, source));
        outcome.holds.extend(observed);
        Some(caller.decided(Acquired::at_once(request, &outcome, source), Some(&endpoint.store)))
    }

    /// Finishes a request that was awaited.
    pub(crate) fn finish<C: Caller>(&self, result: AcquireResult, caller: &C) -> C::Decision {
        match result {
            Ok(mut decided) => {
                let observed = self.report(&decided.acquired());
                decided.outcome.holds.extend(observed);
                let store = self.charged_store(decided.source);
                caller.awaited(decided, store)
            }
            Err(failed) => self.finish_failed(*failed, caller),
        }
    }

    /// Finishes a request that nothing decided. One in shadow goes ahead all the same.
    #[cold]
    fn finish_failed<C: Caller>(&self, failed: FailedRequest, caller: &C) -> C::Decision {
        let FailedRequest { error, request, .. } = failed;
        if let Some(observers) = self.observers() {
            observers.failed(&request);
        }
        let is_permanent = error.is_permanent();
        let error = Error::Store(error);
        if request.is_shadow() {
            request.policies().iter().for_each(|policy| policy.definition.log_shadow_failure(&error));
            let unused = request.unused_outcome();
            return caller.decided(Acquired::at_once(&request, &unused, DecidedBy::Allowed), None);
        }
        error.log_refusal(request.policy_of(0));
        if is_permanent {
            request.policies().iter().for_each(|policy| policy.definition.log_permanent_error(&error));
        }
        caller.failed(None, error)
    }

    /// Tells observers and the log what became of a request. Returns what tells them of the ends of its holds.
    fn report(&self, acquired: &Acquired<'_>) -> Vec<Arc<Hold>> {
        let holds = if self.observers().is_some() { self.observe(acquired) } else { Vec::new() };
        for policy in acquired.request.policies().iter().filter(|policy| acquired.is_shadow(policy)) {
            if let Some(failure) = acquired.shadow_failure(policy) {
                policy.definition.log_shadow_failure(&failure.into());
            } else if !acquired.verdict(policy).admitted {
                policy.definition.log_shadow_refusal();
            }
        }
        holds
    }

    /// Reports the policies that cannot decide the call. Returns the first refusal by one of them, as shadow policies never refuse.
    fn report_failures<C: Caller>(&self, charges: &mut Charges<'_>, caller: &C) -> Option<C::Decision> {
        let mut refusal = None;
        for Failure { definition, cost, shadow, error } in charges.take_failures() {
            let is_free = cost == Ok(0);
            if let Some(observers) = self.observers().filter(|_| !is_free) {
                observers.refused(&definition, cost.unwrap_or(0), &error);
            }
            if shadow {
                definition.log_shadow_failure(&error);
                continue;
            }
            if is_free {
                count_refusal();
            } else {
                definition.log_refusal(&error);
            }
            refusal.get_or_insert((definition.attribute.index, error));
        }
        refusal.map(|(attribute, error)| caller.failed(attribute, error))
    }

    /// Decides the only charge in process, as [`decide_single`](Self::decide_single) does.
    #[inline(always)]
    fn decide_alone<C: Caller>(&self, charges: &Charges<'_>, caller: &C) -> Option<C::Decision> {
        let (memory, charge) = (self.memory()?, charges.only()?);
        self.decide_single(memory, (charge, charges.last_key(charge), charges.parts_of_only(charge)), caller)
    }

    /// Decides a single charge in process, unless the call only looks or may wait, its policy's name is counted, or more than a verdict
    /// is to be told of its key.
    fn decide_single<C: Caller>(
        &self,
        memory: &Arc<MemoryStore>,
        asked: (&PolicyCharge<'_>, Fingerprint, PartsOfKey<'_>),
        caller: &C,
    ) -> Option<C::Decision> {
        if let Some(decision) = self.decide_new(memory, asked, caller) {
            return Some(decision);
        }
        let (charge, key, parts) = asked;
        let PolicyCharge { definition, cost, .. } = *charge;
        if cost == 0 || charge.wait > 0 || definition.static_name().is_none() {
            return None;
        }
        let spec = charge.spec();
        let is_kept = definition.attribute.refundable || self.observers().is_some();
        let admitted = || caller.admitted().filter(|_| !is_kept);
        let verdict = match memory.decide_alone(key, spec, cost) {
            Some(SingleOutcome { now, admitted: admits, snapshot }) => {
                if let Some(admitted) = admitted().filter(|_| admits) {
                    return Some(admitted);
                }
                spec.verdict(snapshot, now, cost, 0)
            }
            None => memory.decide_under_lock(&charge.in_process(key))?,
        };
        if !verdict.admitted && !definition.attribute.penalty.is_empty() {
            return None;
        }
        self.finish_single(SingleDecision::in_process(memory, charge, key, &verdict), parts, caller)
    }

    /// Makes the charges of an attribute's call in process, if all are admitted at once, and nothing has to be kept or told of
    /// that. Otherwise nothing is charged.
    fn admits_list(&self, charges: &Charges<'_>) -> bool {
        let Some(memory) = self.unobserved().filter(|_| !charges.have_failed()) else { return false };
        // Mostly there are few, all in place.
        match charges.few() {
            Some(few) => admits_all(memory, few.iter().flatten()),
            None => admits_all(memory, charges.iter()),
        }
    }

    /// Returns the verdict on a single charge, if leased permits suffice for it, or Redis has refused it lately.
    fn known_remotely(&self, charge: &PolicyCharge<'_>, key: Fingerprint) -> Option<Verdict> {
        let store = self.store()?;
        let (denials, leases) = (store.denials(), store.leases()?);
        let (definition, spec, cost) = (charge.definition, charge.spec(), charge.cost);
        if charge.shadow || cost == 0 || definition.static_name().is_none() {
            return None;
        }
        let lease = definition.attribute.lease;
        if lease.is_some()
            && !self.mirrors()
            && let Some(verdict) = leases.spend_spare(key, spec, cost)
        {
            return Some(verdict);
        }
        if charge.wait > 0 || definition.attribute.refundable {
            return None;
        }
        let verdict = denials?.find(key, spec, cost)?;
        let is_leased = lease.is_some() && leases.suffice(key, spec, cost);
        (!is_leased).then_some(verdict)
    }
}

/// Makes charges in process of which nothing has to be kept, if all are admitted at once. Returns whether it has.
#[inline(always)]
fn admits_all<'c>(memory: &MemoryStore, charges: impl Iterator<Item = &'c PolicyCharge<'c>> + Clone) -> bool {
    let is_simple = |charge: &PolicyCharge<'_>| {
        let is_bare = !charge.shadow && !charge.definition.attribute.refundable;
        is_bare && charge.cost > 0 && charge.wait == 0
    };
    charges.clone().all(is_simple) && memory.admits_all(charges)
}

/// Lets a call go ahead that is sent to no store.
fn skip<C: Caller>(request: &AcquireRequest, caller: &C) -> C::Decision {
    caller.decided(Acquired::at_once(request, &request.unused_outcome(), DecidedBy::Skipped), None)
}

fn skipped(request: &AcquireRequest) -> Decision {
    Acquired::at_once(request, &request.unused_outcome(), DecidedBy::Skipped).into_decision(None)
}
