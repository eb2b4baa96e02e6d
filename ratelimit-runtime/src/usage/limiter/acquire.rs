//! A call of a limiter. Its first poll decides it, unless something has to be awaited.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::algorithm::PlainSpec;
use crate::base::coop::{is_due, poll_spend};
use crate::decide::acquired::{Acquired, DecidedRequest};
use crate::decide::backend::Backend;
use crate::decide::backend::failover::{AcquireFuture, PendingRequest};
use crate::decide::charges::{CallNumbers, Charges, PolicyCharge};
use crate::decide::decision::Decision;
use crate::decide::definition::{Definition, DefinitionRef};
use crate::decide::error::Error;
use crate::decide::pausing::Pausable;
use crate::decide::request::max_wait;
use crate::decide::{Caller, FewDecision, SingleDecision};
use crate::key::missing_key::MissingKey;
use crate::key::{Fingerprint, IntoKey, KeyParts};
use crate::store::{Charge, MemoryStore, PlainOutcome, Store};

/// A call of a limiter.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Acquire<'a, K, M> {
    call: LimiterCall<'a>,
    /// `None` once it is polled.
    key: Option<K>,
    pending: Pending,
    marker: PhantomData<fn() -> M>,
}

/// A call of limiters, while something has to be awaited.
#[derive(Default)]
pub(crate) struct Pending(Option<AcquireFuture>);

/// What a call of a limiter asks, except for its key.
#[derive(Clone, Copy)]
pub(super) struct LimiterCall<'a> {
    pub(super) backend: &'a Arc<Backend>,
    pub(super) definition: &'a Arc<Definition>,
    pub(super) cost: u64,
    pub(super) timeout: Duration,
}

/// The hash of a key, or what it lacks. `None` if that is not known, as operators have changed something of the policy, or if the
/// parts have to be kept.
type Hashed = Option<Result<Fingerprint, MissingKey>>;

/// The caller of limiters, who gets a [`Decision`].
#[derive(Debug)]
pub(crate) struct LimiterCaller;

impl Caller for LimiterCaller {
    type Decision = Result<Decision, Error>;

    #[inline]
    fn admitted(&self) -> Option<Self::Decision> {
        None
    }

    #[inline(always)]
    fn single(&self, decision: SingleDecision<'_>) -> Result<Decision, Error> {
        if decision.charge.shadow { Ok(decision.into_shadow_decision()) } else { decision.into_result() }
    }

    fn few(&self, decision: impl FewDecision) -> Result<Decision, Error> {
        if decision.admitted() { Ok(decision.into_decision()) } else { Err(decision.into_error().1) }
    }

    fn decided(&self, acquired: Acquired<'_>, store: Option<&Store>) -> Result<Decision, Error> {
        acquired.into_decision(store).into_result()
    }

    fn awaited(&self, decided: DecidedRequest, store: Option<&Store>) -> Result<Decision, Error> {
        decided.into_decision(store).into_result()
    }

    fn failed(&self, _attribute: Option<usize>, error: Error) -> Result<Decision, Error> {
        Err(error)
    }
}

impl<'a, M, K: IntoKey<M>> Acquire<'a, K, M> {
    #[inline]
    pub(super) fn new(call: LimiterCall<'a>, key: K) -> Self {
        Acquire { call, key: Some(key), pending: Pending::default(), marker: PhantomData }
    }
}

impl<M, K: IntoKey<M>> Future for Acquire<'_, K, M> {
    type Output = Result<Decision, Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let acquire = self.get_mut();
        let Some(key) = &acquire.key else { return acquire.pending.poll(context) };
        match acquire.call.decide_plain(key) {
            Ok(decision) => {
                acquire.key = None;
                Poll::Ready(decision)
            }
            Err(hashed) => acquire.poll_first(hashed, context),
        }
    }
}

impl<M, K: IntoKey<M>> Acquire<'_, K, M> {
    /// Decides the call in any other way.
    #[inline(never)]
    fn poll_first(&mut self, hashed: Hashed, context: &mut Context<'_>) -> Poll<Result<Decision, Error>> {
        if is_due() {
            ready!(poll_spend(context));
        }
        let Some(key) = self.key.take() else { return Poll::Pending };
        let (hashed, parts) = self.call.or_known(hashed, &key);
        // Returned from here, as a match that it passes through would move it.
        if let Some(decision) = self.call.decide_known(hashed, &parts) {
            return Poll::Ready(decision);
        }
        match self.call.decide_others(hashed, parts, &key) {
            Ok(decision) => Poll::Ready(decision),
            Err(request) => self.pending.start(request, context),
        }
    }
}

impl Pending {
    /// Sends a request, and polls it.
    pub(crate) fn start(
        &mut self,
        request: PendingRequest<'_>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Decision, Error>> {
        self.0 = Some(request.start());
        self.poll(context)
    }

    #[cold]
    pub(crate) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, Error>> {
        // As an async function does.
        let future = self.0.as_mut().expect("the future was polled after it had completed");
        let result = ready!(Pin::new(&mut *future).poll(context));
        let backend = Arc::clone(future.backend());
        self.0 = None;
        Poll::Ready(backend.finish(result, &LimiterCaller))
    }
}

/// The part of a call that is not compiled into its caller. Not decided here after many refusals, so that the task can let others run.
#[inline(never)]
fn decide_plain(
    memory: &MemoryStore,
    key: Fingerprint,
    spec: &PlainSpec,
    cost: u64,
) -> Option<PlainOutcome<1>> {
    if is_due() { None } else { memory.decide_plain(key, spec, cost) }
}

/// Nothing in it is pinned: the key is moved, and so may be the request.
impl<K, M> Unpin for Acquire<'_, K, M> {}

impl<'a> LimiterCall<'a> {
    /// Decides a call by the lock-free steps of the memory store, if nobody observes it. Written out here, so that the compiler
    /// removes what the caller does not read of the decision. Otherwise returns the key, as far as it is known.
    #[inline(always)]
    pub(super) fn decide_plain<M>(&self, key: &impl IntoKey<M>) -> Result<Result<Decision, Error>, Hashed> {
        if self.backend.unobserved().is_none() || !self.is_as_written() {
            return Err(None);
        }
        let hashed = self.hash(key, None);
        if let Ok(key) = hashed
            && let Some(decision) = self.decide_plain_key(key)
        {
            return Ok(decision);
        }
        Err(Some(hashed))
    }

    /// Decides a call to a key of the policy as it is written in the same way.
    #[inline(always)]
    pub(super) fn decide_plain_key(&self, key: Fingerprint) -> Option<Result<Decision, Error>> {
        let (memory, charge) = (self.backend.unobserved()?, self.charge(key));
        let spec = charge.lock_free().filter(|spec| !spec.is_semaphore())?;
        // Read where it is: a copy would read together what was written apart, which is slow.
        let Some(outcome) = &decide_plain(memory, key, spec, charge.cost) else { return None };
        if !charge.is_final(outcome) {
            return None;
        }
        Some(SingleDecision::of_plain(memory, &charge, key, (spec, outcome)).into_result_without_hold())
    }

    /// Decides a call whose key may have been hashed without being kept. Returns the request, if it has to be awaited.
    #[inline]
    pub(super) fn decide<M>(
        &self,
        hashed: Hashed,
        key: &impl IntoKey<M>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        let (hashed, parts) = self.or_known(hashed, key);
        match self.decide_known(hashed, &parts) {
            Some(decision) => Ok(decision),
            None => self.decide_others(hashed, parts, key),
        }
    }

    /// Returns what a call without cost finds, or the request, if it has to be awaited.
    #[inline]
    pub(super) fn peek<M>(
        &self,
        key: &impl IntoKey<M>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        let (hashed, parts) = self.known(key);
        if let Some(Ok(key)) = hashed
            && let Some(decision) = self.backend.peek_single(&self.charge(key), key)
        {
            return Ok(Ok(decision));
        }
        self.backend.peek(&mut self.charges(hashed, parts, key))
    }

    /// Returns the charge of a call without cost, also of a policy that is turned off.
    pub(super) fn uncharged<M>(&self, key: &impl IntoKey<M>) -> Result<Charge, Error> {
        let (hashed, parts) = self.known(key);
        match hashed {
            Some(Ok(key)) if self.backend.memory().is_some() => Ok(self.charge(key).in_process(key)),
            _ => self.backend.charge(&mut self.charges(hashed, parts, key)),
        }
    }

    /// Returns the key, to be paused. `None` where limits are off.
    pub(super) fn pausable<M>(&self, key: &impl IntoKey<M>) -> Result<Option<Pausable>, Error> {
        let mut charges = self.charges_of(key);
        self.backend.close(&mut charges);
        if let Some(failure) = charges.take_failures().into_iter().next() {
            return Err(failure.error);
        }
        let of = |charge| Pausable::new(self.backend, charge, charges.parts_of(charge));
        Ok(charges.iter().next().and_then(of))
    }

    /// Returns the charges of a call without cost.
    pub(super) fn charges_of<M>(&self, key: &impl IntoKey<M>) -> Charges<'a> {
        let (hashed, parts) = self.known(key);
        self.charges(hashed, parts, key)
    }

    /// Refuses a call without a key.
    #[cfg(feature = "web")]
    pub(super) fn refuse(&self, missing: MissingKey) -> Result<(), Error> {
        let decided = self.decide_others(Some(Err(missing)), KeyParts::default(), &());
        decided.map_or(Ok(()), |decision| decision.map(drop))
    }

    /// Decides a call whose key was hashed, as the policy is as it is written, in process, if nothing has to be awaited.
    #[inline(always)]
    fn decide_known(&self, hashed: Hashed, parts: &KeyParts) -> Option<Result<Decision, Error>> {
        let Some(Ok(key)) = hashed else { return None };
        self.backend.decide_one(&self.charge(key), key, parts, &LimiterCaller)
    }

    /// Decides any other call.
    fn decide_others<M>(
        &self,
        hashed: Hashed,
        parts: KeyParts,
        key: &impl IntoKey<M>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        let mut charges = self.charges(hashed, parts, key);
        if let Some(Ok(_)) = hashed {
            return self.backend.decide_any(&mut charges, &LimiterCaller);
        }
        if charges.is_empty() && self.cost > 0 {
            // It is turned off.
            charges = LimiterCall { cost: 0, ..*self }.charges_of(&());
        }
        self.backend.decide(&mut charges, &LimiterCaller)
    }

    /// Hashes the key unless that is done.
    #[inline(always)]
    fn or_known<M>(&self, hashed: Hashed, key: &impl IntoKey<M>) -> (Hashed, KeyParts) {
        match hashed {
            Some(_) => (hashed, KeyParts::default()),
            None => self.known(key),
        }
    }

    /// Hashes the key if the policy is as it is written, and keeps its parts if they may be wanted.
    #[inline(always)]
    fn known<M>(&self, key: &impl IntoKey<M>) -> (Hashed, KeyParts) {
        let mut parts = KeyParts::default();
        let kept = if self.backend.keeps_parts() { Some(&mut parts) } else { None };
        let hashed = self.is_as_written().then(|| self.hash(key, kept));
        (hashed, parts)
    }

    /// Returns the charges of a call. A key that was hashed is not formatted again, as it may be another text the next time.
    fn charges<M>(&self, hashed: Hashed, parts: KeyParts, key: &impl IntoKey<M>) -> Charges<'a> {
        let mut charges = Charges::new(self.backend.keeps_parts());
        match hashed {
            Some(Ok(key)) => return Charges::of(self.charge(key), parts),
            Some(Err(missing)) => {
                charges.fail(DefinitionRef::Counted(self.definition), Ok(self.cost), false, missing.into());
            }
            None => {
                self.add_to(&mut charges);
                charges.key(key);
            }
        }
        charges
    }

    /// Whether it is known that operators have changed nothing of the policy.
    #[inline(always)]
    pub(super) fn is_as_written(&self) -> bool {
        self.definition.is_as_written(self.backend.overrides())
    }

    /// Hashes a key of the policy as it is written.
    #[inline(always)]
    pub(super) fn hash<M>(
        &self,
        key: &impl IntoKey<M>,
        kept: Option<&mut KeyParts>,
    ) -> Result<Fingerprint, MissingKey> {
        self.definition.limiter_numbers().heads.hash.fingerprint(key, kept)
    }

    /// Returns the charge of a policy as it is written.
    #[inline(always)]
    fn charge(&self, key: Fingerprint) -> PolicyCharge<'a> {
        let LimiterCall { definition, cost, timeout, .. } = *self;
        PolicyCharge::literal(definition, definition.limiter_numbers(), key, cost, max_wait(timeout))
    }

    /// Starts the charge of the call.
    pub(super) fn add_to(&self, charges: &mut Charges<'a>) {
        let LimiterCall { backend, definition, cost, timeout } = *self;
        let (literal, wait, overrides) =
            (definition.limiter_numbers(), max_wait(timeout), backend.overrides());
        let definition = DefinitionRef::Counted(definition);
        if !charges.begin_literal(definition, literal, (cost, wait), true, overrides) {
            let numbers = CallNumbers { policy: None, cost: &Ok(cost), wait: Ok(wait) };
            charges.begin(definition, &numbers, true, overrides);
        }
    }
}
