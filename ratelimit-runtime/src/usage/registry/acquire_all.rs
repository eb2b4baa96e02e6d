//! A call of several limiters, all or nothing. Its first poll decides it, unless something has to be awaited.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use smallvec::SmallVec;

use crate::base::coop::{count_refusal, is_due, poll_spend};
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::backend::Backend;
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
        // Returned from here, as a match that it passes through would move it.
        if let [charge] = &*list
            && let Some(decision) = charge.decide_alone(call.backend)
        {
            return Poll::Ready(decision);
        }
        let mut asked = Charges::new(call.backend.keeps_parts());
        if let Some(decision) = decide_list(call.backend, &list, &mut asked) {
            return Poll::Ready(decision);
        }
        match call.backend.decide_any(&mut asked, &LimiterCaller) {
            Ok(decision) => Poll::Ready(decision),
            Err(request) => call.pending.start(request, context),
        }
    }
}

/// Nothing in it is pinned: the charges are moved, and so may be the request.
impl<I> Unpin for AcquireAll<'_, I> {}

/// Decides a list of charges without a request, if that is possible. Otherwise `asked` has the charges of the request.
#[inline(never)]
fn decide_list<'a>(
    backend: &'a Arc<Backend>,
    list: &'a [Charge],
    asked: &mut Charges<'a>,
) -> Option<Result<Decision, Error>> {
    for is_free in [false, true] {
        // A limiter that an operator has turned off decides nothing, unless all are off.
        if asked.is_empty()
            && let Err(invalid) =
                list.iter().try_for_each(|charge| charge.add_to(asked, backend, list, is_free))
        {
            return Some(Err(invalid_list(invalid)));
        }
    }
    if asked.is_empty() {
        return Some(Err(invalid_list(InvalidPolicy::new("charges", "are empty; pass at least one"))));
    }
    if let Some(decision) = backend.decide_plainly(asked, &LimiterCaller) {
        return Some(decision);
    }
    backend.decide_at_hand(asked, &LimiterCaller)
}

/// Returns the error of a list that is invalid, which the task may not repeat for ever without letting others run.
#[cold]
fn invalid_list(invalid: InvalidPolicy) -> Error {
    count_refusal();
    invalid.into()
}
