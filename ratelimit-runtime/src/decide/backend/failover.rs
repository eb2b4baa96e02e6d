//! Requests to a backend, and what happens to those that its store does not decide.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::task::coop::poll_proceed;
use tokio::time::Instant;

use super::Backend;
use super::local::{Local, held};
use crate::base::parker::Parker;
use crate::base::runtime::{BACKGROUND, is_async_context};
use crate::base::timer::Timers;
use crate::decide::acquire::{self, EndpointFuture};
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::decision::Decision;
use crate::decide::endpoint::Endpoint;
use crate::decide::error::Error;
use crate::decide::on_store_error::OnStoreError;
use crate::decide::request::AcquireRequest;
use crate::store::decided_by::DecidedBy;
use crate::store::error::StoreError;
use crate::store::{Mirrored, Outcome, Store};

/// A request to the primary endpoint of a backend that has to be awaited.
#[derive(Debug)]
pub(crate) struct PendingRequest<'a> {
    backend: &'a Arc<Backend>,
    endpoint: &'a Arc<Endpoint>,
    request: Arc<AcquireRequest>,
}

/// A request to a backend that is under way. Dropped, it gives back what it was charged.
pub(crate) struct AcquireFuture {
    backend: Arc<Backend>,
    future: EndpointFuture,
    /// Some while the request is decided in process because the primary store failed.
    local: Option<Box<LocalRequest>>,
    /// Whether the penalties for a refusal have been sent to Redis.
    has_penalized: bool,
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
    /// Whether the local store counts calls that the primary store admits.
    pub(crate) fn mirrors(&self) -> bool {
        self.local.as_ref().is_some_and(Local::had_outage)
    }

    /// Lets the local store count a call that the primary store admits.
    pub(crate) fn mirror(&self, request: &AcquireRequest, outcome: &Outcome) -> Option<Box<Mirrored>> {
        self.local.as_ref()?.mirror(request, outcome)
    }
}

impl<'a> PendingRequest<'a> {
    pub(crate) fn new(
        backend: &'a Arc<Backend>,
        endpoint: &'a Arc<Endpoint>,
        request: Arc<AcquireRequest>,
    ) -> Self {
        PendingRequest { backend, endpoint, request }
    }

    /// Sends the request.
    pub(crate) fn start(self) -> AcquireFuture {
        let PendingRequest { backend, endpoint, request } = self;
        let future = acquire::acquire(request, endpoint);
        AcquireFuture { backend: Arc::clone(backend), future, local: None, has_penalized: false }
    }

    /// Sends the request, and returns what it found.
    pub(crate) async fn peek(self) -> Result<Decision, Error> {
        match self.start().await {
            Ok(decided) => Ok(decided.into_decision(None)),
            Err(failed) => Err(failed.error.into()),
        }
    }

    /// Sends the request, and blocks the thread while that takes. In async code it fails with this problem instead, as it would keep
    /// other tasks from running.
    pub(crate) fn block_on(self, in_async_code: impl FnOnce(&AcquireRequest) -> String) -> AcquireResult {
        if is_async_context() {
            let problem = in_async_code(&self.request);
            return self.fail(problem);
        }
        let parker = Parker::new();
        match &self.endpoint.store {
            Store::Memory(_) => {
                let timers = Timers::Thread(Arc::clone(&parker));
                let result = parker.block_on(acquire::acquire_by(self.request, self.endpoint, timers));
                result.map(|decided| self.backend.penalize_decided(decided))
            }
            Store::Redis(_) => match BACKGROUND.handle() {
                Ok(runtime) => {
                    let _entered = runtime.enter();
                    parker.block_on(self.start())
                }
                Err(error) => self.fail(format!("there is no runtime for blocking calls: {error}")),
            },
        }
    }

    fn fail(self, problem: String) -> AcquireResult {
        Err(FailedRequest::new(StoreError::permanent(problem), self.request))
    }
}

impl AcquireFuture {
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
                Some(Ok(DecidedRequest::new(failed.request, outcome, DecidedBy::Allowed)))
            }
            OnStoreError::Deny => Some(Err(failed)),
        }
    }

    /// Lets the local store count a call that the primary store admits. Done here, where a call goes ahead, so that one that is
    /// dropped before, and refunded, is not counted.
    fn mirror(&self, mut decided: DecidedRequest) -> DecidedRequest {
        decided.mirrored = self.backend.mirror(&decided.request, &decided.outcome);
        if let (Some(local), Some(Store::Redis(_))) = (&self.backend.local, self.backend.store()) {
            local.count_holds(&decided.request, &mut decided.outcome);
        }
        decided
    }

    /// Has the primary store hear, once it is back, of what a call holds that was decided in process.
    fn with_holds(&self, mut decided: DecidedRequest) -> DecidedRequest {
        let Some(Store::Redis(redis)) = self.backend.store() else { return decided };
        let held = held(&decided.request, &decided.outcome);
        decided.outcome.holds.extend(held.iter().filter_map(|(index, charge)| redis.admit(*index, charge)));
        decided
    }

    /// Pauses the keys that a refusal penalizes. Returns `None` if that is under way.
    fn penalize(&mut self, decided: DecidedRequest) -> Option<DecidedRequest> {
        if self.has_penalized || !self.backend.may_penalize(&decided) {
            return Some(self.backend.penalize_decided(decided));
        }
        self.has_penalized = true;
        let backend = Arc::clone(&self.backend);
        self.future = EndpointFuture::waiting(async move { Ok(backend.penalize(decided).await) });
        None
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
            let decided = DecidedRequest::new(request, Box::new(outcome), DecidedBy::Local);
            return Some(local.report(Ok(decided)).map(|decided| self.with_holds(decided)));
        }
        (self.future, self.local) = (acquire::acquire(request, endpoint), Some(Box::new(local)));
        None
    }
}

impl LocalRequest {
    fn report(self, result: AcquireResult) -> AcquireResult {
        let mut decided = result?;
        decided.source = DecidedBy::Local;
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
        // Calls that nobody has to wait for, as during an outage, would keep other tasks from running.
        let operation = ready!(poll_proceed(context));
        loop {
            let result = ready!(Pin::new(&mut self.future).poll(context));
            let result = match (self.local.take(), result) {
                (Some(local), result) => Some(local.report(result).map(|decided| self.with_holds(decided))),
                (None, Ok(decided)) => Some(Ok(self.mirror(decided))),
                (None, Err(failed)) => self.apply(failed),
            };
            let result = match result {
                Some(Ok(decided)) => self.penalize(decided).map(Ok),
                other => other,
            };
            if let Some(result) = result {
                operation.made_progress();
                return Poll::Ready(result);
            }
        }
    }
}
