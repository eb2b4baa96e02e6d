//! A request to Redis that completes even if its call is dropped.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::runtime::Handle;
use tokio::time::Instant;

use super::denied;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::AcquireRequest;
use crate::store::SharedCharges;

/// A request that Redis decides. Dropped before the reply, it continues as a task that gives back what was charged.
pub(crate) struct DetachOnDrop {
    endpoint: Arc<Endpoint>,
    /// `None` once it is done.
    asking: Option<Pin<Box<dyn Future<Output = AcquireResult> + Send>>>,
    /// The runtime it was first polled on; nothing is sent before.
    runtime: Option<Handle>,
}

impl DetachOnDrop {
    pub(super) fn ask(request: Arc<AcquireRequest>, endpoint: &Arc<Endpoint>) -> Self {
        let asking = Box::pin(ask(request, Arc::clone(endpoint)));
        DetachOnDrop { endpoint: Arc::clone(endpoint), asking: Some(asking), runtime: None }
    }
}

async fn ask(request: Arc<AcquireRequest>, endpoint: Arc<Endpoint>) -> AcquireResult {
    let (sent, shared) = (Instant::now(), SharedCharges::new(Arc::clone(&request)));
    match endpoint.store.decide_shared(&shared, sent).await {
        Ok(outcome) => {
            endpoint.health.record_success();
            if let Some(denials) = endpoint.store.denials() {
                denied::record(&request, &outcome, sent, denials);
            }
            Ok(DecidedRequest::new(request, outcome, endpoint.store.source()))
        }
        Err(error) => {
            if !error.is_permanent() {
                endpoint.health.record_failure(&error);
            }
            Err(FailedRequest::new(error, request))
        }
    }
}

impl Future for DetachOnDrop {
    type Output = AcquireResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<AcquireResult> {
        if self.runtime.is_none() {
            self.runtime = Handle::try_current().ok();
        }
        // Taken out while it is polled, so that a request that panics is not continued.
        let Some(mut asking) = self.asking.take() else { return Poll::Pending };
        let result = asking.as_mut().poll(context);
        if result.is_pending() {
            self.asking = Some(asking);
        }
        result
    }
}

impl Drop for DetachOnDrop {
    fn drop(&mut self) {
        if let (Some(asking), Some(runtime)) = (self.asking.take(), &self.runtime) {
            let endpoint = Arc::clone(&self.endpoint);
            runtime.spawn(async move {
                if let Ok(decided) = asking.await {
                    endpoint.give_back(None, [decided.into_receipt(&endpoint.store)]);
                }
            });
        }
    }
}
