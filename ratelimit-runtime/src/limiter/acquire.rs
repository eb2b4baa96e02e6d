//! A call of a limiter. Its first poll decides it, if it can, on the fast lane: at once, without a lock, a list or a reference
//! count.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use super::definition::Definition;
use crate::backend::Backend;
use crate::backend::failover::AcquireFuture;
use crate::decision::{Decision, SinglePolicy};
use crate::error::{Error, Limited};
use crate::key::IntoKey;
use crate::lane::LanePolicy;
use crate::policy::Algorithm;
use crate::request::AcquireRequest;
use crate::source::Source;
use crate::store::{MemoryStore, PlainCharge, PlainOutcome};

/// A call of a limiter.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Acquire<'a, K, M> {
    call: LimiterCall<'a>,
    /// `None` once it is polled.
    key: Option<K>,
    /// The call on the general path, until it is decided.
    general: Option<AcquireFuture>,
    marker: PhantomData<fn() -> M>,
}

/// What a call asks, except for its key.
#[derive(Clone, Copy)]
struct LimiterCall<'a> {
    backend: &'a Arc<Backend>,
    definition: &'a Definition,
    cost: u64,
    timeout: Duration,
}

/// A call that the fast lane has decided.
struct Decided<'a> {
    lane: &'a LanePolicy,
    memory: &'a Arc<MemoryStore>,
    charge: PlainCharge,
    outcome: PlainOutcome<1>,
}

impl<'a, M, K: IntoKey<M>> Acquire<'a, K, M> {
    #[inline]
    pub(super) fn new(
        backend: &'a Arc<Backend>,
        definition: &'a Definition,
        key: K,
        cost: u64,
        timeout: Duration,
    ) -> Self {
        let call = LimiterCall { backend, definition, cost, timeout };
        Acquire { call, key: Some(key), general: None, marker: PhantomData }
    }
}

impl<M, K: IntoKey<M>> Future for Acquire<'_, K, M> {
    type Output = Result<Decision, Error>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let acquire = self.get_mut();
        match acquire.call.decide_plain(acquire.key.as_ref()) {
            Some(decided) => {
                acquire.key = None;
                Poll::Ready(decided.into_result())
            }
            None => acquire.poll_general(context),
        }
    }
}

impl<M, K: IntoKey<M>> Acquire<'_, K, M> {
    #[cold]
    fn poll_general(&mut self, context: &mut Context<'_>) -> Poll<Result<Decision, Error>> {
        if let Some(key) = self.key.take() {
            match self.call.acquire_general(key) {
                ControlFlow::Break(result) => return Poll::Ready(result),
                ControlFlow::Continue(future) => self.general = Some(future),
            }
        }
        // As an async function does.
        let general = self.general.as_mut().expect("the future was polled after it had completed");
        let result = ready!(Pin::new(&mut *general).poll(context));
        self.general = None;
        Poll::Ready(self.call.backend.acquired(result))
    }
}

/// Nothing in it is pinned: the key is moved, and so may be the general call.
impl<K, M> Unpin for Acquire<'_, K, M> {}

impl<'a> LimiterCall<'a> {
    /// Decides a call on the fast lane. Returns `None`, and has then charged nothing, for one that takes the general path.
    #[inline(always)]
    fn decide_plain<M>(&self, key: Option<&impl IntoKey<M>>) -> Option<Decided<'a>> {
        let (memory, lane) = (self.backend.memory()?, self.definition.lane.as_ref()?);
        let waits = !self.timeout.is_zero();
        if self.cost == 0 || waits && !lane.reserves() || self.backend.overrides().is_active() {
            return None;
        }
        let charge = lane.charge(lane.key_head.fingerprint(key?).ok()?, self.cost);
        let outcome = decide(memory, charge).filter(|outcome| outcome.admitted || !waits)?;
        Some(Decided { lane, memory, charge, outcome })
    }

    /// Refuses a call that the store is known to refuse, without the text of its key.
    fn denied<M>(&self, key: &impl IntoKey<M>) -> Option<Error> {
        if self.backend.overrides().is_active() {
            return None;
        }
        let LimiterCall { backend, definition: Definition { interned, spec, key_heads, .. }, cost, timeout } =
            *self;
        let (denials, name) = (backend.denials()?, interned.filter(|_| timeout.is_zero())?);
        let verdict = denials.find(key_heads.hash.fingerprint(key).ok()?, spec, cost)?;
        let denied = SinglePolicy::new(name, Algorithm::of(spec), &verdict);
        Some(Error::limited(Limited::of_one(denied, Source::Redis)))
    }

    /// Breaks with the decision, if nothing has to be awaited.
    #[cold]
    fn acquire_general<M>(
        &self,
        key: impl IntoKey<M>,
    ) -> ControlFlow<Result<Decision, Error>, AcquireFuture> {
        if let Some(denied) = self.denied(&key) {
            return ControlFlow::Break(Err(denied));
        }
        let LimiterCall { backend, definition, cost, timeout } = *self;
        let mut request = AcquireRequest::default();
        match definition.add_to(&mut request, backend, key, cost, timeout) {
            Ok(()) => backend.start(&mut request),
            Err(error) => ControlFlow::Break(Err(error)),
        }
    }
}

/// The part of a call that is not inlined, as it does not depend on the caller.
fn decide(memory: &MemoryStore, charge: PlainCharge) -> Option<PlainOutcome<1>> {
    if charge.spec.is_common() { memory.decide_plain(charge) } else { memory.decide_all_plain([charge]) }
}

impl Decided<'_> {
    #[inline(always)]
    fn into_result(self) -> Result<Decision, Error> {
        let Decided { lane, memory, charge, outcome } = self;
        match outcome.admitted {
            true => Ok(lane.admitted(memory, charge, &outcome)),
            false => Err(lane.limited(charge.cost, &outcome)),
        }
    }
}
