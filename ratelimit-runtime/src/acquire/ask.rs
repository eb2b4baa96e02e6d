//! One decision of the store.

use std::sync::Arc;

use super::detach::DetachOnDrop;
use crate::acquired::{Acquired, Step};
use crate::endpoint::Endpoint;
use crate::request::AcquireRequest;
use crate::store::Store;

/// Sends a request, and waits for nothing but the reply. In process the result is ready at once.
pub(super) fn once(request: AcquireRequest, endpoint: &Arc<Endpoint>) -> Step<DetachOnDrop> {
    match &endpoint.store {
        Store::Memory(memory) => {
            let outcome = memory.decide(request.charges());
            Step::Ready(Ok(Acquired::new(request, outcome, endpoint.store.source())))
        }
        Store::Redis(_) => Step::Pending(DetachOnDrop::ask(request, endpoint)),
    }
}
