//! A call of a limiter. Its first poll decides it, if it can, on the fast lane: at once, without a lock, a list or a reference
//! count. All of that is inlined, so that a caller who ignores a part of the decision does not pay for it.

use std::future::Future;
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use super::definition::Definition;
use crate::algorithm::PlainSnapshot;
use crate::backend::Backend;
use crate::decision::{Decision, SinglePolicy};
use crate::error::{Error, Limited};
use crate::key::{Fingerprint, IntoKey};
use crate::policy::Algorithm;
use crate::source::Source;
use crate::store::{MemoryStore, PlainCharge, PlainOutcome, PlainReceipt, PlainSpec};

/// A call of a limiter.
#[must_use = "futures do nothing unless polled"]
pub(super) struct Acquire<'a, K, M> {
    call: LimiterCall<'a>,
    /// `None` once it is polled.
    key: Option<K>,
    /// The call on the general path. Boxed, because it is large.
    general: Option<GeneralFuture>,
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

type GeneralFuture = Pin<Box<dyn Future<Output = Result<Decision, Error>> + Send>>;

/// A call that the fast lane has decided.
struct Decided<'a> {
    name: &'static str,
    definition: &'a Definition,
    memory: &'a Arc<MemoryStore>,
    spec: PlainSpec,
    key: Fingerprint,
    cost: u64,
    now: u64,
    admitted: bool,
    snapshot: PlainSnapshot,
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
        let Acquire { call, key, general, .. } = self.get_mut();
        if let Some(key) = key.take() {
            match call.decide_plain(&key) {
                Some(decided) => return Poll::Ready(decided.into_result()),
                None => match call.acquire_general(key) {
                    ControlFlow::Break(result) => return Poll::Ready(result),
                    ControlFlow::Continue(future) => *general = Some(future),
                },
            }
        }
        match general {
            Some(general) => general.as_mut().poll(context),
            // As an async function does.
            None => panic!("the future was polled after it had completed"),
        }
    }
}

/// Nothing in it is pinned: the key is moved, and the general call is in a box.
impl<K, M> Unpin for Acquire<'_, K, M> {}

impl<'a> LimiterCall<'a> {
    /// Decides a call on the fast lane. Returns `None`, and has then charged nothing, for one that takes the general path.
    #[inline(always)]
    fn decide_plain<M>(self, key: &impl IntoKey<M>) -> Option<Decided<'a>> {
        let LimiterCall { backend, definition, cost, timeout } = self;
        let Definition { spec, key_head, interned, .. } = definition;
        let (memory, name) = (backend.memory()?, (*interned)?);
        // Calls that wait for a window queue, and one that waits for a bucket does so only if it is refused.
        if cost == 0 || !spec.is_plain() || !(timeout.is_zero() || spec.reserves()) {
            return None;
        }
        let plain_spec = PlainSpec::of(spec)?;
        let mut hasher = key_head.hasher();
        let key = match key.hash_parts(&mut hasher).ok()? {
            true => hasher.finish(),
            false => key_head.without_parts(),
        };
        let outcome = memory.decide_plain(PlainCharge { key: &key, spec, cost })?;
        let PlainOutcome { now, admitted, snapshots: [snapshot] } = outcome;
        let is_final = admitted || timeout.is_zero();
        is_final.then_some(Decided {
            name,
            definition,
            memory,
            spec: plain_spec,
            key,
            cost,
            now,
            admitted,
            snapshot,
        })
    }

    /// Breaks with the decision, if nothing has to be awaited.
    #[cold]
    fn acquire_general<M>(self, key: impl IntoKey<M>) -> ControlFlow<Result<Decision, Error>, GeneralFuture> {
        let LimiterCall { backend, definition, cost, timeout } = self;
        let mut request = match definition.request(backend, key, cost, timeout) {
            Ok(request) => request,
            Err(error) => return ControlFlow::Break(Err(error)),
        };
        if let Some(result) = backend.acquire_at_once(&mut request) {
            return ControlFlow::Break(result);
        }
        let backend = Arc::clone(backend);
        ControlFlow::Continue(Box::pin(async move { backend.acquire_later(request).await }))
    }
}

impl Decided<'_> {
    #[inline(always)]
    fn into_result(self) -> Result<Decision, Error> {
        let Definition { spec, policy_id, .. } = self.definition;
        let verdict = spec.verdict_plain(self.snapshot, self.now, self.cost);
        let policy = SinglePolicy::new(self.name, Algorithm::of(spec), &verdict);
        if !self.admitted {
            return Err(Error::Limited(Limited::of_one(policy, Source::Memory)));
        }
        let Decided { memory, spec, key, cost, .. } = self;
        let receipt = PlainReceipt::new(memory.id(), key, *policy_id, spec, cost, verdict.charge_id);
        Ok(Decision::of_one(policy, Source::Memory, Duration::ZERO, Some(receipt)))
    }
}
