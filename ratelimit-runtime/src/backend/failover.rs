//! Requests to a backend, and what happens to those that its store does not decide.

use std::future::Future;
use std::mem;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::Backend;
use super::local::Local;
use crate::acquire::{self, EndpointFuture};
use crate::acquired::{AcquireResult, Acquired, DecidedRequest, FailedRequest};
use crate::decision::Decision;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::log::log;
use crate::on_store_error::OnStoreError;
use crate::parker::Parker;
use crate::request::AcquireRequest;
use crate::runtime;
use crate::source::Source;
use crate::store::{Mirrored, Outcome, Store};
use crate::timer::Timers;

/// A request to a backend that is under way. Dropped, it gives back what it was charged.
pub(crate) struct AcquireFuture {
    backend: Arc<Backend>,
    future: EndpointFuture,
    /// Some while the request is decided in process because the primary store failed.
    local: Option<Box<LocalRequest>>,
}

/// How a request reports that was decided by a share of its policies.
struct LocalRequest {
    since: Option<Instant>,
    queued: bool,
    /// The shadow charges that the share can never admit, by index.
    never_admitted: Vec<usize>,
}

/// Why a shadow policy was not decided locally.
const EXCEEDS_SHARE: &str = "the store is unavailable, and the call costs more than this process's share";

impl Backend {
    /// Decides the request of a limiter, waiting as long as its charges may. A request without cost is not sent to the store.
    pub(crate) async fn acquire(self: &Arc<Self>, mut request: AcquireRequest) -> Result<Decision, Error> {
        match self.start(&mut request) {
            ControlFlow::Break(result) => result,
            ControlFlow::Continue(future) => self.acquired(future.await),
        }
    }

    /// Starts to decide the request of a limiter like [`acquire`](Self::acquire). Breaks with the result, if nothing has to be
    /// awaited.
    pub(crate) fn start(
        self: &Arc<Self>,
        request: &mut AcquireRequest,
    ) -> ControlFlow<Result<Decision, Error>, AcquireFuture> {
        match self.at_once(request) {
            Ok(result) => ControlFlow::Break(result),
            Err(endpoint) => ControlFlow::Continue(AcquireFuture::new(request, endpoint, self)),
        }
    }

    /// Returns the result of a request of a limiter that was awaited. One in shadow is admitted, also if nothing decides it.
    pub(crate) fn acquired(&self, result: AcquireResult) -> Result<Decision, Error> {
        match result {
            Err(failed) if failed.request.is_shadow() => Ok(self.admit_shadow(*failed)),
            result => {
                let decision = self.decided(result)?;
                self.overrides.log_shadows(&decision);
                decision.into_result()
            }
        }
    }

    fn admit_shadow(&self, failed: FailedRequest) -> Decision {
        let request = Arc::clone(&failed.request);
        let error = self.report_failure(failed);
        if let Some(calls) = self.shadow_failure_log.count() {
            let policy = request.policy_of(0);
            log!(INFO, policy, %error, calls, "shadow policy could not be evaluated");
        }
        let outcome = Box::new(request.unused_outcome());
        DecidedRequest::new(request, outcome, Source::Allowed).into_decision(None)
    }

    /// Whether the local store counts calls that the primary store admits.
    pub(crate) fn mirrors(&self) -> bool {
        self.local.as_ref().is_some_and(Local::had_outage)
    }

    /// Lets the local store count a call that the primary store admits.
    pub(crate) fn mirror(&self, request: &AcquireRequest, outcome: &Outcome) -> Option<Box<Mirrored>> {
        self.local.as_ref()?.mirror(request, outcome)
    }

    /// Sends the request of a limiter to the store, and returns the decision even if it is a refusal.
    pub(crate) async fn decide(self: &Arc<Self>, mut request: AcquireRequest) -> Result<Decision, Error> {
        let Some(endpoint) = self.primary() else { return Ok(skipped(&request)) };
        if let Some(decision) = self.decided_at_once(&mut request, endpoint) {
            return Ok(decision);
        }
        self.decided(AcquireFuture::new(&mut request, endpoint, self).await)
    }

    /// Decides the request of a limiter like [`acquire`](Self::acquire), and blocks the thread while that takes.
    pub(crate) fn acquire_blocking(self: &Arc<Self>, mut request: AcquireRequest) -> Result<Decision, Error> {
        let endpoint = match self.at_once(&mut request) {
            Ok(result) => return result,
            Err(endpoint) => endpoint,
        };
        let parker = Parker::new();
        let result = match &endpoint.store {
            Store::Memory(_) => {
                let timers = Timers::Thread(Arc::clone(&parker));
                parker.block_on(acquire::acquire_by(Arc::new(request), endpoint, timers))
            }
            Store::Redis(_) => {
                let runtime = runtime::background()?;
                let _entered = runtime.enter();
                parker.block_on(AcquireFuture::new(&mut request, endpoint, self))
            }
        };
        self.acquired(result)
    }

    /// Decides the request of a limiter in process. Returns the endpoint that decides it, if something has to be awaited.
    fn at_once(&self, request: &mut AcquireRequest) -> Result<Result<Decision, Error>, &Arc<Endpoint>> {
        let Some(endpoint) = self.primary().filter(|_| request.has_cost()) else {
            return Ok(Ok(skipped(request)));
        };
        let decision = self.decided_at_once(request, endpoint).ok_or(endpoint)?;
        self.overrides.log_shadows(&decision);
        Ok(decision.into_result())
    }

    fn decided(&self, result: AcquireResult) -> Result<Decision, Error> {
        let decided = result.map_err(|failed| self.report_failure(*failed))?;
        self.observe(decided.acquired());
        let store = self.charged_store(decided.source);
        Ok(decided.into_decision(store))
    }

    /// Decides the request of a limiter in process, if nothing has to be awaited.
    fn decided_at_once(&self, request: &mut AcquireRequest, endpoint: &Arc<Endpoint>) -> Option<Decision> {
        let outcome = acquire::decide_at_once(request, endpoint)?;
        let acquired = Acquired::at_once(request, &outcome, endpoint.store.source());
        self.observe(acquired);
        Some(acquired.into_decision(Some(&endpoint.store)))
    }
}

/// The decision about a request that is not sent to a store.
fn skipped(request: &AcquireRequest) -> Decision {
    Acquired::at_once(request, &request.unused_outcome(), Source::Skipped).into_decision(None)
}

impl AcquireFuture {
    /// Sends a request to the primary endpoint of a backend. The request is taken, not moved, because it is large.
    pub(crate) fn new(
        request: &mut AcquireRequest,
        endpoint: &Arc<Endpoint>,
        backend: &Arc<Backend>,
    ) -> Self {
        AcquireFuture {
            backend: Arc::clone(backend),
            future: acquire::acquire(Arc::new(mem::take(request)), endpoint),
            local: None,
        }
    }

    pub(crate) fn backend(&self) -> &Arc<Backend> {
        &self.backend
    }

    /// Applies `on_store_error` to a request that the primary store did not decide. Returns `None` if it is now under way in
    /// process.
    fn apply(&mut self, failed: Box<FailedRequest>) -> Option<AcquireResult> {
        if failed.error.is_permanent() {
            return Some(Err(failed));
        }
        match failed.request.on_store_error() {
            OnStoreError::Local => self.decide_locally(failed),
            OnStoreError::Allow => {
                let outcome = Box::new(failed.request.unused_outcome());
                Some(Ok(DecidedRequest::new(failed.request, outcome, Source::Allowed)))
            }
            OnStoreError::Deny => Some(Err(failed)),
        }
    }

    /// Lets the local store count a call that the primary store admits. Done here, where a call goes ahead, so that one that is
    /// dropped before, and refunded, is not counted.
    fn mirror(&self, mut decided: DecidedRequest) -> DecidedRequest {
        decided.mirrored = self.backend.mirror(&decided.request, &decided.outcome);
        decided
    }

    /// Decides in process, in the time that the call may still wait.
    fn decide_locally(&mut self, mut failed: Box<FailedRequest>) -> Option<AcquireResult> {
        let Some(stand_in) = &self.backend.local else { return Some(Err(failed)) };
        stand_in.note_outage();
        // Limited would be wrong for a cost that only the share cannot admit: the policy may admit the same call.
        let Some(never_admitted) = Arc::make_mut(&mut failed.request).divide(stand_in.instances()) else {
            return Some(Err(failed));
        };
        let FailedRequest { mut request, since, queued, .. } = *failed;
        let waiting = Arc::make_mut(&mut request);
        waiting.spend_wait(since.map_or(Duration::ZERO, |since| since.elapsed()));
        let local = LocalRequest { since, queued, never_admitted };
        let endpoint = stand_in.endpoint();
        if let Some(outcome) = acquire::decide_at_once(waiting, endpoint) {
            let decided = DecidedRequest::new(request, Box::new(outcome), Source::Local);
            return Some(local.report(Ok(decided)));
        }
        (self.future, self.local) = (acquire::acquire(request, endpoint), Some(Box::new(local)));
        None
    }
}

impl LocalRequest {
    fn report(self, result: AcquireResult) -> AcquireResult {
        let mut decided = result?;
        decided.source = Source::Local;
        let never_admitted = self.never_admitted.into_iter();
        decided.outcome.failed.extend(never_admitted.map(|charge| (charge, EXCEEDS_SHARE.to_owned())));
        // A call that waits for a window has waited since it was made.
        if let Some(since) = self.since
            && !decided.request.can_reserve()
            && (self.queued || !decided.waited.is_zero())
        {
            decided.waited = since.elapsed();
        }
        Ok(decided)
    }
}

impl Future for AcquireFuture {
    type Output = AcquireResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireResult> {
        loop {
            let result = ready!(Pin::new(&mut self.future).poll(context));
            let result = match (self.local.take(), result) {
                (Some(local), result) => Some(local.report(result)),
                (None, Ok(decided)) => Some(Ok(self.mirror(decided))),
                (None, Err(failed)) => self.apply(failed),
            };
            if let Some(result) = result {
                return Poll::Ready(result);
            }
        }
    }
}
