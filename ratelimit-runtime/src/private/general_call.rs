//! A call of a limited function on the general path.

use std::sync::Arc;

use super::Checked;
use super::charged::{Refusal, log_shadow_failure};
use super::future::DecisionFuture;
use crate::acquire::decide_at_once;
use crate::acquired::Acquired;
use crate::algorithm::AlgorithmSpec;
use crate::backend::Backend;
use crate::backend::failover::AcquireFuture;
use crate::call_site::{SiteName, SiteOptions};
use crate::decision::SinglePolicy;
use crate::error::missing_key::MissingKey;
use crate::error::{Error, Limited};
use crate::key::{KeyPart, KeyTexts, KeyWriter};
use crate::name::Name;
use crate::policy::{Algorithm, Policy};
use crate::request::{AcquireRequest, PolicyCharge};
use crate::source::Source;
use crate::store::Charge;

/// A call with any charges.
#[derive(Debug, Default)]
pub(super) struct GeneralCall {
    request: AcquireRequest,
    /// The charge whose key is being written.
    open: Option<OpenCharge>,
    /// The policies that cannot decide the call.
    failures: Vec<Failure>,
}

#[derive(Debug)]
struct OpenCharge {
    site: &'static SiteName,
    spec: AlgorithmSpec,
    cost: u64,
    wait: u64,
    is_shadow: bool,
    parts: KeyWriter,
}

/// Why a policy cannot decide a call.
#[derive(Debug)]
struct Failure {
    site: &'static SiteName,
    cost: u64,
    is_shadow: bool,
    error: Error,
}

impl GeneralCall {
    /// Starts the charge of a policy, for which the call waits for at most `wait` microseconds. A cost of 0 adds no charge, and
    /// neither does a policy that an operator has turned off.
    pub(super) fn charge(
        &mut self,
        site: &'static SiteName,
        policy: Checked<Policy>,
        cost: Checked<u64>,
        wait: Checked<u64>,
        backend: &Backend,
    ) {
        self.close(backend);
        let overridden = backend.overrides().of(site.options.prefix, &[site.name, &site.declared]);
        if cost == Ok(0) || overridden.as_ref().is_some_and(|it| it.is_off()) {
            return;
        }
        let known_cost = *cost.as_ref().unwrap_or(&0);
        let is_shadow = site.options.shadow || overridden.as_ref().is_some_and(|it| it.is_shadow());
        let spec = || match &overridden {
            Some(overridden) => overridden.spec(site.literal_spec(), policy?),
            None => site.literal_spec().copied().map_or_else(|| policy?.spec(), Ok),
        };
        let checked = site.check().and_then(|()| Ok((spec()?, cost?, wait?)));
        match checked {
            Ok((spec, cost, wait)) => {
                let kept = site.key_heads().filter(|_| overridden.is_none());
                let parts = backend.key_writer(site.head(&spec), kept);
                let wait = if is_shadow { 0 } else { wait };
                self.open = Some(OpenCharge { site, spec, cost, wait, is_shadow, parts });
            }
            Err(invalid) => self.fail(site, known_cost, is_shadow, invalid.into()),
        }
    }

    /// Adds a part to the key of the last charge.
    pub(super) fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(open) = &mut self.open
            && let Err(missing) = part.write(&mut open.parts)
        {
            self.missing(missing);
        }
    }

    /// Drops the open charge, because its key lacks a part.
    pub(super) fn missing(&mut self, missing: MissingKey) {
        if let Some(open) = self.open.take() {
            self.fail(open.site, open.cost, open.is_shadow, missing.into());
        }
    }

    /// Adds the open charge to the request.
    fn close(&mut self, backend: &Backend) {
        let Some(OpenCharge { site, spec, cost, wait, is_shadow, mut parts }) = self.open.take() else {
            return;
        };
        let key_texts = parts.take_texts();
        match backend.finish_key(parts, site.name, site.policy) {
            Ok(key) => {
                let charge = Charge { key, spec, cost, wait, shadow: is_shadow };
                self.push(site, charge, key_texts, backend);
            }
            Err(missing) => self.fail(site, cost, is_shadow, missing.into()),
        }
    }

    /// Adds a charge.
    #[inline]
    pub(super) fn push(
        &mut self,
        site: &'static SiteName,
        charge: Charge,
        key_texts: KeyTexts,
        backend: &Backend,
    ) {
        let (cost, is_shadow) = (charge.cost, charge.shadow);
        let on_store_error = backend.on_store_error(site.options.on_store_error);
        let name = Name::Static(site.name);
        let policy = PolicyCharge { name, site: Some(site), charge, key_texts, on_store_error };
        if let Err(invalid) = self.request.push(policy) {
            self.fail(site, cost, is_shadow, invalid.into());
        }
    }

    /// Notes that a policy cannot decide the call.
    #[cold]
    pub(super) fn fail(&mut self, site: &'static SiteName, cost: u64, is_shadow: bool, error: Error) {
        self.failures.push(Failure { site, cost, is_shadow, error });
    }

    /// Reports the policies that cannot decide the call. Returns the first refusal by one of them, as shadow policies never refuse.
    #[cold]
    fn refusal(&mut self, backend: &Backend) -> Option<Refusal> {
        let mut refusal = None;
        for Failure { site, cost, is_shadow, error } in self.failures.drain(..) {
            if let Some(observers) = backend.observers() {
                observers.refused(site.name, site.options.algorithm, cost, &error);
            }
            if is_shadow {
                log_shadow_failure(site, &error);
            } else {
                error.log_refusal(site.name);
                refusal.get_or_insert(Refusal { policy: Some(site.options.policy), error });
            }
        }
        refusal
    }

    /// Admits a call for which there are leased permits to spare, without the text of its key.
    fn is_leased(&self, backend: &Backend) -> bool {
        if let Some(OpenCharge { site, spec, cost, is_shadow: false, parts, .. }) = &self.open
            && site.options.lease.is_some()
            && self.failures.is_empty()
            && !backend.mirrors()
            && let (Some(leases), Ok(key)) = (backend.leases(), parts.fingerprint())
        {
            return leases.spend_spare(key, spec, *cost);
        }
        false
    }

    /// Refuses a call with a single charge that the store is known to refuse, without the text of its key. No
    /// leased permits suffice for it.
    fn denied(&self, backend: &Backend) -> Option<Refusal> {
        let denials = backend.denials()?;
        let OpenCharge { site, spec, cost, wait: 0, is_shadow: false, parts } = self.open.as_ref()? else {
            return None;
        };
        let SiteOptions { policy, refundable, lease, .. } = *site.options;
        if refundable || !self.failures.is_empty() || !self.request.is_empty() {
            return None;
        }
        let key = parts.fingerprint().ok()?;
        let verdict = denials.find(key, spec, *cost)?;
        if lease.is_some() && backend.leases()?.suffice(key, spec, *cost) {
            return None;
        }
        let denied = SinglePolicy::new(site.name, Algorithm::of(spec), &verdict);
        let error = Error::limited(Limited::of_one(denied, Source::Redis));
        Some(Refusal { policy: Some(policy), error })
    }

    /// Decides the call. Returns `None` if it is admitted at once, and charged nothing that may be refunded.
    pub(super) fn decide(&mut self, backend: &Arc<Backend>) -> Option<DecisionFuture> {
        if let Some(denied) = self.denied(backend) {
            return Some(DecisionFuture::ready(Err(denied)));
        }
        if self.is_leased(backend) {
            return None;
        }
        self.close(backend);
        let endpoint = backend.primary()?;
        if !self.failures.is_empty()
            && let Some(refusal) = self.refusal(backend)
        {
            return Some(DecisionFuture::ready(Err(refusal)));
        }
        let request = &mut self.request;
        if request.is_empty() {
            return None;
        }
        Some(match decide_at_once(request, endpoint) {
            Some(outcome) => {
                backend.mirror(request, &outcome);
                let acquired = Acquired::at_once(request, &outcome, endpoint.store.source());
                backend.observe(acquired);
                match acquired.into_charged(Some(&endpoint.store)) {
                    Ok(charged) if charged.is_nothing() => return None,
                    decision => DecisionFuture::ready(decision),
                }
            }
            None => DecisionFuture::pending(AcquireFuture::new(request, endpoint, backend)),
        })
    }
}
