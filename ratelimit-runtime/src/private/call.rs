//! A call of a limited function, as its generated prologue builds it.

use std::fmt::{self, Display};
use std::time::Duration;

use super::Checked;
use super::charged::{Refusal, log_shadow_failure};
use super::future::DecisionFuture;
use crate::acquire::decide_at_once;
use crate::acquired::Acquired;
use crate::algorithm::AlgorithmSpec;
use crate::backend::KeyOwner;
use crate::backend::failover::AcquireFuture;
use crate::call_site::SiteName;
use crate::context;
use crate::error::Error;
use crate::error::missing_key::MissingKey;
use crate::key::{KeyPart, KeyWriter};
use crate::name::Name;
use crate::policy::Policy;
use crate::registry::Registry;
use crate::registry::current::current;
use crate::request::{AcquireRequest, PolicyCharge, max_wait};
use crate::store::Charge;

/// A call that is being put together: for each policy a charge, followed by the parts of its key.
pub struct Call {
    registry: Registry,
    request: AcquireRequest,
    /// The charge whose key is being written.
    open: Option<OpenCharge>,
    /// The first thing that is wrong with the call.
    refusal: Option<Refusal>,
}

struct OpenCharge {
    site: &'static SiteName,
    spec: AlgorithmSpec,
    cost: u64,
    wait: u64,
    parts: KeyWriter,
}

impl Call {
    /// Starts a call that the current registry decides.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Call::on(&current())
    }

    /// Starts a call that this registry decides.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        Call { registry: registry.clone(), request: AcquireRequest::default(), open: None, refusal: None }
    }

    /// Starts the charge of a policy, for which the call waits for at most `timeout`. A cost of 0 adds no charge.
    pub fn charge(
        &mut self,
        site: &'static SiteName,
        policy: Checked<Policy>,
        cost: Checked<u64>,
        timeout: Checked<Duration>,
    ) {
        self.close();
        if cost == Ok(0) {
            return;
        }
        let checked = site.check().and_then(|()| Ok((policy?.spec()?, cost?, timeout?)));
        match checked {
            Ok((spec, cost, timeout)) => {
                let parts = self.registry.backend().key_writer();
                self.open = Some(OpenCharge { site, spec, cost, wait: max_wait(timeout), parts });
            }
            Err(invalid) => self.fail(site, invalid.into()),
        }
    }

    /// Adds a part to the key of the last charge.
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(open) = &mut self.open
            && let Err(missing) = part.write(&mut open.parts)
        {
            self.missing(missing);
        }
    }

    /// Adds the client address of the context.
    pub fn ip(&mut self) {
        self.context_part(context::ip());
    }

    /// Adds the user of the context.
    pub fn user(&mut self) {
        self.context_part(context::user());
    }

    /// Adds the user of the context, or without one the address. A user never equals an address.
    pub fn user_or_ip(&mut self) {
        match context::user() {
            Ok(user) => {
                self.part("user");
                self.part(&*user);
            }
            Err(_) => {
                self.part("ip");
                self.ip();
            }
        }
    }

    /// Decides the call, at once where nothing has to be awaited.
    pub fn decide(mut self) -> DecisionFuture {
        self.close();
        let backend = self.registry.backend();
        let Some(endpoint) = backend.primary() else { return DecisionFuture::admitted() };
        if let Some(refusal) = self.refusal {
            return DecisionFuture::ready(Err(refusal));
        }
        if self.request.is_empty() {
            return DecisionFuture::admitted();
        }
        match decide_at_once(&mut self.request, endpoint) {
            Some(outcome) => {
                let acquired = Acquired::at_once(&self.request, &outcome, endpoint.store.source());
                DecisionFuture::ready(acquired.into_charged(Some(&endpoint.store)))
            }
            None => DecisionFuture::pending(AcquireFuture::new(self.request, endpoint, backend)),
        }
    }

    fn context_part(&mut self, part: Result<impl Display, MissingKey>) {
        if self.open.is_none() {
            return;
        }
        match part {
            Ok(part) => self.part(&part),
            Err(missing) => self.missing(missing),
        }
    }

    /// Drops the open charge, because its key lacks a part.
    fn missing(&mut self, missing: MissingKey) {
        if let Some(open) = self.open.take() {
            self.fail(open.site, missing.into());
        }
    }

    /// Adds the open charge to the request.
    fn close(&mut self) {
        let Some(open) = self.open.take() else { return };
        let site = open.site;
        if let Err(error) = self.push(open) {
            self.fail(site, error);
        }
    }

    fn push(&mut self, open: OpenCharge) -> Result<(), Error> {
        let OpenCharge { site, spec, cost, wait, parts } = open;
        let backend = self.registry.backend();
        let name = Name::Static(&site.name);
        let owner = KeyOwner {
            prefix: site.options.prefix,
            name: &name,
            function: site.function.as_deref(),
            policy: site.policy,
        };
        let key = backend.finish_key(parts, owner, &spec)?;
        let charge = Charge { key, spec, cost, wait, shadow: site.options.shadow };
        let on_store_error = backend.on_store_error(site.options.on_store_error);
        Ok(self.request.push(PolicyCharge { name, site: Some(site), charge, on_store_error })?)
    }

    /// Refuses the call, unless the policy never refuses.
    fn fail(&mut self, site: &SiteName, error: Error) {
        if site.options.shadow {
            log_shadow_failure(&site.name, &error);
        } else {
            self.refusal.get_or_insert(Refusal { policy: Some(site.options.policy), error });
        }
    }
}

/// Without keys.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("registry", &self.registry).finish_non_exhaustive()
    }
}
