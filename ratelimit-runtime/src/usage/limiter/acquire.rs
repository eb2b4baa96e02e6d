//! A call of a limiter. Its first poll decides it, unless something has to be awaited.

use std::future::Future;
use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::decide::acquired::{Acquired, DecidedRequest};
use crate::decide::backend::Backend;
use crate::decide::backend::failover::{AcquireFuture, PendingRequest};
use crate::decide::charges::{CallNumbers, Charges, PolicyCharge};
use crate::decide::decision::Decision;
use crate::decide::definition::{Definition, DefinitionRef};
use crate::decide::error::Error;
use crate::decide::request::max_wait;
use crate::decide::{Caller, SingleDecision};
use crate::key::missing_key::MissingKey;
use crate::key::{IntoKey, KeyParts};
use crate::store::Store;

/// A call of a limiter.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Acquire<'a, K, M> {
    call: LimiterCall<'a>,
    /// `None` once it is polled.
    key: Option<K>,
    /// The call, while something has to be awaited.
    pending: Option<AcquireFuture>,
    marker: PhantomData<fn() -> M>,
}

/// What a call of a limiter asks, except for its key.
#[derive(Clone, Copy)]
pub(super) struct LimiterCall<'a> {
    pub(super) backend: &'a Arc<Backend>,
    pub(super) definition: &'a Arc<Definition>,
    pub(super) cost: u64,
    pub(super) timeout: Duration,
}

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
        if decision.goes_ahead() { Ok(decision.into_decision()) } else { Err(decision.into_error()) }
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
        Acquire { call, key: Some(key), pending: None, marker: PhantomData }
    }
}

impl<M, K: IntoKey<M>> Future for Acquire<'_, K, M> {
    type Output = Result<Decision, Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let acquire = self.get_mut();
        if let Some(key) = acquire.key.take() {
            match acquire.call.decide(&key) {
                Ok(decision) => return Poll::Ready(decision),
                Err(request) => acquire.pending = Some(request.start()),
            }
        }
        acquire.poll_pending(context)
    }
}

impl<K, M> Acquire<'_, K, M> {
    #[cold]
    fn poll_pending(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, Error>> {
        // As an async function does.
        let pending = self.pending.as_mut().expect("the future was polled after it had completed");
        let result = ready!(Pin::new(&mut *pending).poll(context));
        self.pending = None;
        Poll::Ready(self.call.backend.finish(result, &LimiterCaller))
    }
}

/// Nothing in it is pinned: the key is moved, and so may be the request.
impl<K, M> Unpin for Acquire<'_, K, M> {}

impl<'a> LimiterCall<'a> {
    /// Decides a call. Returns the request, if it has to be awaited.
    #[inline(always)]
    pub(super) fn decide<M>(
        &self,
        key: &impl IntoKey<M>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        let LimiterCall { backend, definition, cost, timeout } = *self;
        let numbers = definition.limiter_numbers();
        if backend.overrides().is_active() {
            return self.decide_overridden(self.charges(key));
        }
        let mut parts = KeyParts::default();
        let kept = if backend.keeps_parts() { Some(&mut parts) } else { None };
        let fingerprint = match numbers.heads.hash.fingerprint(key, kept) {
            Ok(fingerprint) => fingerprint,
            Err(missing) => return self.decide_failed(missing),
        };
        let charge = PolicyCharge::literal(definition, numbers, fingerprint, cost, max_wait(timeout));
        if let Some(memory) = backend.memory()
            && let Some(decision) = SingleDecision::in_memory(memory, &charge, fingerprint)
        {
            return Ok(backend.finish_single(decision, &parts, &LimiterCaller));
        }
        backend.decide_any(&mut Charges::of(charge, parts), &LimiterCaller)
    }

    #[cold]
    fn decide_overridden(
        &self,
        mut charges: Charges<'a>,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        if charges.is_empty() && self.cost > 0 {
            // It is turned off.
            charges = LimiterCall { cost: 0, ..*self }.charges(&());
        }
        self.backend.decide(&mut charges, &LimiterCaller)
    }

    /// Refuses a call whose key lacks a part.
    #[cold]
    pub(super) fn decide_failed(
        &self,
        missing: MissingKey,
    ) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
        let (definition, mut charges) = (DefinitionRef::Counted(self.definition), Charges::new(false));
        charges.fail(definition, Ok(self.cost), false, missing.into());
        self.backend.decide_any(&mut charges, &LimiterCaller)
    }

    /// Returns the charge of the call.
    pub(super) fn charges<M>(&self, key: &impl IntoKey<M>) -> Charges<'a> {
        let mut charges = Charges::new(self.backend.keeps_parts());
        self.add_to(&mut charges);
        charges.key(key);
        charges
    }

    /// Starts the charge of the call.
    pub(super) fn add_to(&self, charges: &mut Charges<'a>) {
        let LimiterCall { backend, definition, cost, timeout } = *self;
        let numbers = CallNumbers { policy: None, cost: Ok(cost), wait: Ok(max_wait(timeout)) };
        charges.begin(DefinitionRef::Counted(definition), numbers, true, backend.overrides());
    }
}
