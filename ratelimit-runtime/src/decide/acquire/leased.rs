//! Requests of policies with a lease: permits that are leased already, and the requests for more.

mod keeper;

use std::pin::pin;
use std::slice;
use std::sync::Arc;

use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::Instant;

use self::keeper::Keeper;
use super::detach::DetachOnDrop;
use crate::base::timer::until;
use crate::decide::acquired::{AcquireResult, DecidedRequest, FailedRequest};
use crate::decide::endpoint::Endpoint;
use crate::decide::request::AcquireRequest;
use crate::store::error::StoreError;
use crate::store::{Charge, Fetch, Leases, Outcome, RedisStore, Reply, Verdict, Verdicts};

/// A call that waits for a lease.
pub(super) struct LeaseWaiter {
    runtime: Handle,
    deadline: Instant,
    reply: oneshot::Receiver<Reply>,
}

/// Admits a request that leased permits suffice for.
pub(super) fn spend(
    request: &AcquireRequest,
    leases: &Arc<Leases>,
    endpoint: &Arc<Endpoint>,
) -> Option<Outcome> {
    let (charge, _) = request.lease()?;
    let (verdict, fetch) = leases.spend(charge)?;
    if let Ok(runtime) = Handle::try_current() {
        spawn(fetch, charge, endpoint, &runtime);
    }
    Some(admitted(verdict))
}

/// Lets a request wait for a lease, if there is one to wait for.
pub(super) fn join(
    request: &AcquireRequest,
    store: &RedisStore,
    endpoint: &Arc<Endpoint>,
) -> Option<LeaseWaiter> {
    let (charge, size) = request.lease()?;
    let runtime = Handle::try_current().ok()?;
    let (reply, fetch) = store.leases().join(charge, size)?;
    spawn(fetch, charge, endpoint, &runtime);
    Some(LeaseWaiter { runtime, deadline: store.deadline(), reply })
}

impl LeaseWaiter {
    /// Waits for permits of the lease. Without them, the request is sent to Redis. Ends by the deadline of one call all the same.
    pub(super) async fn wait(self, request: Arc<AcquireRequest>, endpoint: Arc<Endpoint>) -> AcquireResult {
        let LeaseWaiter { runtime, deadline, reply } = self;
        let reply = match until(&runtime, deadline, pin!(reply)).await {
            Ok(reply) => reply.unwrap_or_else(|| Ok(Err(StoreError::deadline_exceeded(&"Redis", deadline)))),
            Err(no_timers) => Ok(Err(no_timers.into())),
        };
        match reply {
            Ok(Ok(grant)) => {
                let outcome = Box::new(admitted(grant.spend()));
                Ok(DecidedRequest::new(request, outcome, endpoint.store.source()))
            }
            Ok(Err(error)) => Err(FailedRequest::new(error, request)),
            Err(_) => {
                let asking = DetachOnDrop::ask(request.clone(), &endpoint);
                match until(&runtime, deadline, pin!(asking)).await {
                    Ok(Some(result)) => result,
                    Ok(None) => {
                        Err(FailedRequest::new(StoreError::deadline_exceeded(&"Redis", deadline), request))
                    }
                    Err(no_timers) => Err(FailedRequest::new(no_timers.into(), request)),
                }
            }
        }
    }
}

/// Starts to take leases, if that is for this call to do.
fn spawn(fetch: Option<Fetch>, charge: &Charge, endpoint: &Arc<Endpoint>, runtime: &Handle) {
    if let Some(fetch) = fetch {
        let (charge, endpoint, keeps_on) = (charge.clone(), Arc::clone(endpoint), runtime.clone());
        runtime.spawn(async move {
            let keeper = Keeper::new(charge.key.fingerprint(), &endpoint, keeps_on);
            take_leases(fetch, charge, endpoint).await;
            if let Some(keeper) = keeper {
                keeper.run().await;
            }
        });
    }
}

/// Takes leases until no call waits for one.
async fn take_leases(mut fetch: Fetch, mut charge: Charge, endpoint: Arc<Endpoint>) {
    while let Some(permits) = fetch.next() {
        charge.cost = permits;
        match endpoint.store.decide(slice::from_ref(&charge)).await {
            Ok(outcome) => {
                let Outcome { admitted, verdicts, .. } = *outcome;
                endpoint.health.record_success();
                if admitted {
                    let denials = endpoint.store.denials().into_iter();
                    denials.for_each(|denials| denials.forget_other_numbers(&charge));
                    fetch.granted(permits, &verdicts[0]);
                } else {
                    fetch.refused(&verdicts[0]);
                }
            }
            Err(error) => {
                if !error.is_permanent() {
                    endpoint.health.record_failure(&error);
                }
                fetch.failed(&error);
            }
        }
    }
}

fn admitted(verdict: Verdict) -> Outcome {
    Outcome { admitted: true, verdicts: Verdicts::from_iter([verdict]), ..Outcome::default() }
}
