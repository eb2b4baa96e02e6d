//! The decision about a call, as generated code awaits it: small, as every limited function's future holds one.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use crate::call_site::SiteName;
use crate::error::Error;
use crate::store::Receipt;

type Task<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// The decision about a call.
#[must_use]
pub struct DecisionFuture(Progress);

type Verdict = Result<Charged, Refusal>;

enum Progress {
    Done(Option<Verdict>),
    Asked(Task<Verdict>),
}

/// Why a call does not go ahead.
#[derive(Debug)]
pub struct Refusal {
    /// The attribute whose policy is to blame, by its place on the function. None for a store that failed.
    pub policy: Option<usize>,
    /// What it says.
    pub error: Error,
}

/// What an admitted call may give back, once its output is known: by policy, as `charge_when` is asked for each.
///
/// Dropped, as with a call that is cancelled or panics, it gives nothing back.
#[derive(Debug)]
pub struct Charged(Option<Box<[(&'static SiteName, Receipt)]>>);

impl Charged {
    /// What a call has that took nothing.
    pub const NOTHING: Charged = Charged(None);

    pub(crate) fn new(receipts: impl Iterator<Item = (&'static SiteName, Receipt)>) -> Self {
        let mut receipts = receipts.peekable();
        Charged(receipts.peek().is_some().then(|| receipts.collect()))
    }

    /// Gives back what the policies took for which it is said that they do not charge this call.
    pub fn refund(self, charges: &[(usize, bool)]) -> RefundFuture {
        let Some(receipts) = self.0 else { return RefundFuture(None) };
        let kept = |named: &SiteName| charges.contains(&(named.options.policy, true));
        let back: Vec<_> = receipts.into_vec().into_iter().filter(|(named, _)| !kept(named)).collect();
        if back.is_empty() {
            return RefundFuture(None);
        }
        RefundFuture(Some(Box::pin(async move {
            for (named, receipt) in back {
                if let Err(error) = receipt.refund().await {
                    let error = &error as &(dyn std::error::Error + 'static);
                    tracing::warn!(policy = &*named.name, error, "a charge could not be given back");
                }
            }
        })))
    }
}

/// Permits on their way back.
#[must_use]
pub struct RefundFuture(Option<Task<()>>);

impl DecisionFuture {
    pub(crate) fn ready(decided: Verdict) -> Self {
        DecisionFuture(Progress::Done(Some(decided)))
    }

    pub(crate) fn asked(decided: impl Future<Output = Verdict> + Send + 'static) -> Self {
        DecisionFuture(Progress::Asked(Box::pin(decided)))
    }
}

impl Future for DecisionFuture {
    type Output = Verdict;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Progress::Done(decided) => decided.take().map_or(Poll::Pending, Poll::Ready),
            Progress::Asked(asked) => asked.as_mut().poll(context),
        }
    }
}

impl Future for RefundFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |task| task.as_mut().poll(context))
    }
}

impl fmt::Debug for DecisionFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DecisionFuture")
    }
}

impl fmt::Debug for RefundFuture {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RefundFuture")
    }
}
