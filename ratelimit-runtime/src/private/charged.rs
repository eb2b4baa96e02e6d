//! What generated code learns of a decision.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use crate::acquired::{AcquireResult, Acquired};
use crate::backend::Backend;
use crate::call_site::SiteName;
use crate::error::Error;
use crate::log::log;
use crate::request::{AcquireRequest, RequestedPolicy};
use crate::store::{Receipt, Store};

/// Why a call is refused.
#[derive(Debug)]
pub struct Refusal {
    /// The index of the attribute whose policy refused; `None` if the store failed.
    pub policy: Option<usize>,
    /// The error for the caller.
    pub error: Error,
}

/// The charges of an admitted call that `charge_when` may refund once the output is known.
///
/// Dropped, as with a call that is cancelled or panics, it refunds nothing.
pub struct Charged(Option<Box<[RefundableCharge]>>);

struct RefundableCharge {
    site: &'static SiteName,
    receipt: Receipt,
}

/// A refund that is under way.
#[must_use]
pub struct RefundFuture(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Charged {
    /// No charge that may be refunded.
    pub const NOTHING: Charged = Charged(None);

    pub(super) fn is_nothing(&self) -> bool {
        self.0.is_none()
    }

    /// Refunds the charges of all policies except those listed with `true`, by the index of their attribute.
    pub fn refund(self, charges: &[(usize, bool)]) -> RefundFuture {
        let Some(charged) = self.0 else { return RefundFuture(None) };
        let is_kept = |site: &SiteName| charges.contains(&(site.options.policy, true));
        let refunded: Vec<_> =
            charged.into_vec().into_iter().filter(|charge| !is_kept(charge.site)).collect();
        if refunded.is_empty() {
            return RefundFuture(None);
        }
        RefundFuture(Some(Box::pin(async move {
            for RefundableCharge { site, receipt } in refunded {
                if let Err(error) = receipt.refund().await {
                    log!(WARN, policy = site.name, %error, "failed to refund a charge");
                    continue;
                }
                #[cfg(feature = "web")]
                if let Some(record) = crate::context::record() {
                    record.remove(site.name);
                }
            }
        })))
    }
}

impl Acquired<'_> {
    /// Converts it to what a limited function does next. `store` is the store that was charged, if any was.
    pub(super) fn into_charged(self, store: Option<&Store>) -> Result<Charged, Refusal> {
        self.log_shadows();
        if !self.outcome.admitted {
            let decision = self.into_decision(None);
            let site = self.request.policies()[decision.reported()].site;
            let policy = site.map(|site| site.options.policy);
            return Err(Refusal { policy, error: decision.into_error() });
        }
        let Some(store) = store else { return Ok(Charged::NOTHING) };
        let refundable = self.request.policies().iter().filter_map(|policy| {
            let site = policy.site.filter(|site| site.options.refundable)?;
            Some(RefundableCharge { site, receipt: self.receipt_of(policy, store) })
        });
        let mut refundable = refundable.peekable();
        Ok(Charged(refundable.peek().is_some().then(|| refundable.collect())))
    }

    fn log_shadows(&self) {
        for (policy, site) in shadow_sites(self.request) {
            if let Some(failure) = self.shadow_failure(policy) {
                log_shadow_failure(site, &failure.into());
            } else if !self.verdict(policy).admitted
                && let Some(calls) = site.refusal_log.count()
            {
                let algorithm = self.algorithm(policy).name();
                log!(INFO, policy = site.name, algorithm, calls, "shadow policy would have limited calls");
            }
        }
    }
}

/// Converts the result of a request to what a limited function does next.
pub(super) fn into_charged(result: AcquireResult, backend: &Backend) -> Result<Charged, Refusal> {
    let failed = match result {
        Ok(decided) => {
            let acquired = decided.acquired();
            backend.observe(acquired);
            return acquired.into_charged(backend.charged_store(decided.source));
        }
        Err(failed) => failed,
    };
    let request = Arc::clone(&failed.request);
    let error = backend.report_failure(*failed);
    if request.is_shadow() {
        shadow_sites(&request).for_each(|(_, site)| log_shadow_failure(site, &error));
        return Ok(Charged::NOTHING);
    }
    Err(Refusal { policy: None, error })
}

/// Logs that a shadow policy was not evaluated.
pub(super) fn log_shadow_failure(site: &SiteName, error: &Error) {
    if let Some(calls) = site.failure_log.count() {
        log!(INFO, policy = site.name, %error, calls, "shadow policy could not be evaluated");
    }
}

fn shadow_sites(request: &AcquireRequest) -> impl Iterator<Item = (&RequestedPolicy, &'static SiteName)> {
    let policies = request.policies().iter();
    let is_shadow = |policy: &&RequestedPolicy| request.charges()[policy.charge].shadow;
    policies.filter(is_shadow).filter_map(|policy| Some((policy, policy.site?)))
}

impl Future for RefundFuture {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.0.as_mut().map_or(Poll::Ready(()), |refund| refund.as_mut().poll(context))
    }
}

impl std::fmt::Debug for RefundFuture {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RefundFuture")
    }
}

/// Without keys.
impl std::fmt::Debug for Charged {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Charged")
    }
}
