//! Requests to a backend, and what happens to those that its store does not decide.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::Backend;
use crate::acquire::{self, EndpointFuture};
use crate::acquired::{AcquireResult, Acquired, FailedRequest, Step};
use crate::decision::Decision;
use crate::error::Error;
use crate::on_store_error::OnStoreError;
use crate::request::AcquireRequest;
use crate::source::Source;

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
    /// Decides a request, all or nothing, waiting as long as its charges may. A request without cost is not sent to the store.
    pub(crate) fn acquire(self: &Arc<Self>, request: AcquireRequest) -> Step<AcquireFuture> {
        if request.has_cost() {
            self.send(request)
        } else {
            Step::Ready(Ok(Acquired::uncharged(request, Source::Skipped)))
        }
    }

    /// Decides a request without cost, which reports what a call now would get.
    pub(crate) async fn peek(self: &Arc<Self>, request: AcquireRequest) -> Result<Decision, Error> {
        let result = match self.send(request) {
            Step::Ready(result) => result,
            Step::Pending(future) => future.await,
        };
        self.decision(result)
    }

    fn send(self: &Arc<Self>, request: AcquireRequest) -> Step<AcquireFuture> {
        let Some(endpoint) = &self.primary else {
            return Step::Ready(Ok(Acquired::uncharged(request, Source::Skipped)));
        };
        match acquire::acquire(request, endpoint) {
            Step::Ready(result) => Step::Ready(result),
            Step::Pending(future) => {
                Step::Pending(AcquireFuture { backend: Arc::clone(self), future, local: None })
            }
        }
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
            OnStoreError::Allow => Some(Ok(Acquired::uncharged(failed.request, Source::Allowed))),
            OnStoreError::Deny => Some(Err(failed)),
        }
    }

    /// Decides in process, in the time that the call may still wait.
    fn decide_locally(&mut self, mut failed: Box<FailedRequest>) -> Option<AcquireResult> {
        let Some(stand_in) = &self.backend.local else { return Some(Err(failed)) };
        // Limited would be wrong for a cost that only the share cannot admit: the policy may admit the same call.
        let Some(never_admitted) = failed.request.divide(stand_in.instances) else {
            return Some(Err(failed));
        };
        let FailedRequest { mut request, since, queued, .. } = *failed;
        request.spend_wait(since.map_or(Duration::ZERO, |since| since.elapsed()));
        let local = LocalRequest { since, queued, never_admitted };
        match acquire::acquire(request, &stand_in.endpoint) {
            Step::Ready(result) => Some(local.report(result)),
            Step::Pending(future) => {
                (self.future, self.local) = (future, Some(Box::new(local)));
                None
            }
        }
    }
}

impl LocalRequest {
    fn report(self, result: AcquireResult) -> AcquireResult {
        let mut acquired = result?;
        acquired.source = Source::Local;
        let never_admitted = self.never_admitted.into_iter();
        acquired.outcome.failed.extend(never_admitted.map(|charge| (charge, EXCEEDS_SHARE.to_owned())));
        // A call that waits for a window has waited since it was made.
        if let Some(since) = self.since
            && !acquired.request.can_reserve()
            && (self.queued || !acquired.waited.is_zero())
        {
            acquired.waited = since.elapsed();
        }
        Ok(acquired)
    }
}

impl Future for AcquireFuture {
    type Output = AcquireResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireResult> {
        loop {
            let result = ready!(Pin::new(&mut self.future).poll(context));
            let result = match (self.local.take(), result) {
                (Some(local), result) => Some(local.report(result)),
                (None, Ok(acquired)) => Some(Ok(acquired)),
                (None, Err(failed)) => self.apply(failed),
            };
            if let Some(result) = result {
                return Poll::Ready(result);
            }
        }
    }
}
