//! Calls of functions that are not async. They block the thread where the others are awaited.

use super::{AttributeCall, BoundCall, Call};
use crate::decide::Caller;
use crate::decide::backend::Backend;
use crate::decide::backend::failover::PendingRequest;
use crate::decide::decision::Decision;
use crate::usage::private::charged::{Charged, Refusal};

impl Call {
    /// Decides the call like [`decide`](Self::decide), and blocks the thread where it would have to be awaited.
    pub fn decide_blocking(&mut self) -> Option<Result<Charged, Refusal>> {
        // Without one, there is no charge.
        let backend = self.backend.as_ref()?;
        match backend.decide_plainly(&self.charges, &AttributeCall) {
            Some(decision) => decision,
            None => self.decide_others_blocking(),
        }
    }

    #[inline(never)]
    fn decide_others_blocking(&mut self) -> Option<Result<Charged, Refusal>> {
        let backend = self.backend.as_ref()?;
        match backend.decide_others(&mut self.charges, &AttributeCall) {
            Ok(decision) => decision,
            Err(request) => block_on(backend, request, &AttributeCall),
        }
    }

    /// Decides a call whose body gets the decision, and blocks the thread where it would have to be awaited.
    pub fn decide_bound_blocking(&mut self) -> Result<Decision, Refusal> {
        let Some(backend) = self.backend.as_ref().filter(|_| !self.charges.is_empty()) else {
            return Ok(Decision::unlimited());
        };
        match backend.decide(&mut self.charges, &BoundCall) {
            Ok(decision) => decision,
            Err(request) => block_on(backend, request, &BoundCall),
        }
    }
}

#[cold]
fn block_on<C: Caller>(backend: &Backend, request: PendingRequest<'_>, caller: &C) -> C::Decision {
    let result = request.block_on(|request| {
        let policy = request.policy_of(0);
        format!(
            "`{policy}` limits a function that is not async, and that was called in async code, where it would block other tasks; \
             write `async fn`, or move the call into `tokio::task::spawn_blocking`"
        )
    });
    backend.finish(result, caller)
}
