//! A call of several limiters, all or nothing. Its first poll decides it, unless something has to be awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use smallvec::SmallVec;

use crate::base::coop::{count_refusal, is_due, poll_spend};
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::backend::Backend;
use crate::decide::backend::failover::PendingRequest;
use crate::decide::charges::Charges;
use crate::decide::decision::Decision;
use crate::decide::error::Error;
use crate::store::INLINE;
use crate::usage::limiter::{Charge, LimiterCaller, Pending};

/// A call of several limiters. An async function would move what it is passed twice before it reads that.
#[must_use = "futures do nothing unless polled"]
pub(super) struct AcquireAll<'a, I> {
    backend: &'a Arc<Backend>,
    /// `None` once it is polled.
    charges: Option<I>,
    pending: Pending,
}

impl<'a, I: Iterator<Item = Charge>> AcquireAll<'a, I> {
    #[inline]
    pub(super) fn new(backend: &'a Arc<Backend>, charges: I) -> Self {
        AcquireAll { backend, charges: Some(charges), pending: Pending::default() }
    }
}

impl<I: Iterator<Item = Charge>> Future for AcquireAll<'_, I> {
    type Output = Result<Decision, Error>;

    #[inline]
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let call = self.get_mut();
        let Some(charges) = &mut call.charges else { return call.pending.poll(context) };
        if is_due() {
            ready!(poll_spend(context));
        }
        let mut list = SmallVec::<[Charge; INLINE]>::new();
        // Moved once, into the list.
        charges.for_each(|charge| list.push(charge));
        call.charges = None;
        match decide(call.backend, &list) {
            Ok(decision) => {
                if decision.is_err() {
                    // Lists that are invalid count as well, and are longer than other calls that are refused.
                    count_refusal();
                }
                Poll::Ready(decision)
            }
            Err(request) => call.pending.start(request, context),
        }
    }
}

/// Nothing in it is pinned: the charges are moved, and so may be the request.
impl<I> Unpin for AcquireAll<'_, I> {}

/// Decides a list of charges. Returns the request, if it has to be awaited.
#[inline]
fn decide<'a>(
    backend: &'a Arc<Backend>,
    list: &[Charge],
) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
    if let [charge] = list
        && let Some(decision) = charge.decide_alone(backend)
    {
        return Ok(decision);
    }
    decide_list(backend, list)
}

fn decide_list<'a>(
    backend: &'a Arc<Backend>,
    list: &[Charge],
) -> Result<Result<Decision, Error>, PendingRequest<'a>> {
    let mut call = Charges::new(backend.keeps_parts());
    for is_free in [false, true] {
        // A limiter that an operator has turned off decides nothing, unless all are off.
        if call.is_empty()
            && let Err(invalid) = list.iter().try_for_each(|it| it.add_to(&mut call, backend, is_free))
        {
            return Ok(Err(invalid.into()));
        }
    }
    if call.is_empty() {
        return Ok(Err(InvalidPolicy::new("charges", "are empty; pass at least one").into()));
    }
    backend.decide(&mut call, &LimiterCaller)
}
