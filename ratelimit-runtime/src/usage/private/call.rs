//! A call of a limited function, as its generated prologue builds it.

use std::fmt;
use std::time::Duration;

use super::Checked;
use super::charged::AttributeCall;
use super::future::{Decided, DecisionFuture};
use crate::decide::charges::{CallNumbers, Charges};
use crate::decide::definition::DefinitionRef;
use crate::decide::request::max_wait;
use crate::key::{AddressText, KeyPart};
use crate::policy::Policy;
use crate::usage::call_site::{CallSite, SiteName};
use crate::usage::context;
use crate::usage::registry::Registry;
use crate::usage::registry::current::{CurrentRegistry, current};

/// A call that is being put together: for each policy a charge, followed by the parts of its key.
pub struct Call {
    /// The registry that decides it. `None` before the first charge, unless the call names one.
    registry: Option<CurrentRegistry>,
    charges: Charges<'static>,
}

impl Call {
    /// Starts a call that the current registry decides.
    #[inline]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Call { registry: None, charges: Charges::new(false) }
    }

    /// Starts a call that this registry decides.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        let charges = Charges::new(registry.backend().keeps_parts());
        Call { registry: Some(CurrentRegistry::Own(registry.clone())), charges }
    }

    /// Starts the charge of a policy with literal numbers and a literal cost, for which the call waits for at most `wait`
    /// microseconds. A cost of 0 adds no charge.
    pub fn charge_literal(&mut self, site: &'static CallSite, closure: &'static str, cost: u64, wait: u64) {
        let site = site.resolve(closure);
        self.begin();
        let Call { registry: Some(registry), charges } = self else { return };
        if let Some(literal) = site.definition.literal()
            && cost > 0
            && site.definition.is_as_written(registry.backend().overrides())
        {
            return charges.begin_literal(DefinitionRef::Static(&site.definition), literal, cost, wait);
        }
        self.charge_site(site, &CallNumbers { policy: None, cost: Ok(cost), wait: Ok(wait) });
    }

    /// Starts the charge of a policy with literal numbers, for which the call waits for at most `timeout`. A cost of 0 adds no
    /// charge.
    pub fn charge_written(
        &mut self,
        site: &'static CallSite,
        closure: &'static str,
        cost: Checked<u64>,
        timeout: Checked<Duration>,
    ) {
        let site = site.resolve(closure);
        self.begin();
        self.charge_site(site, &CallNumbers { policy: None, cost, wait: timeout.map(max_wait) });
    }

    /// Starts the charge of a policy with computed numbers, for which the call waits for at most `timeout`. A cost of 0 adds no
    /// charge.
    pub fn charge(
        &mut self,
        site: &'static CallSite,
        closure: &'static str,
        policy: Checked<Policy>,
        cost: Checked<u64>,
        timeout: Checked<Duration>,
    ) {
        let site = site.resolve(closure);
        self.begin();
        self.charge_site(site, &CallNumbers { policy: Some(&policy), cost, wait: timeout.map(max_wait) });
    }

    /// Adds a part to the key of the last charge.
    #[inline(always)]
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        self.charges.part(part);
    }

    /// Adds the client address of the context.
    pub fn ip(&mut self) {
        match context::ip() {
            Ok(ip) => self.part(AddressText::new(ip).as_str()),
            Err(missing) => self.charges.missing(missing),
        }
    }

    /// Adds the user of the context.
    pub fn user(&mut self) {
        match context::user() {
            Ok(user) => self.part(&*user),
            Err(missing) => self.charges.missing(missing),
        }
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

    /// Decides the call. Returns `None` if it is admitted at once, and charged nothing that may be refunded.
    pub fn decide(&mut self) -> Option<Decided> {
        // Without a registry, there is no charge.
        let backend = self.registry.as_ref()?.backend();
        match backend.decide(&mut self.charges, &AttributeCall) {
            Ok(None) => None,
            Ok(Some(Ok(charged))) => Some(Decided::Charged(charged)),
            Ok(Some(Err(refusal))) => Some(Decided::Refused(refusal)),
            Err(request) => Some(Decided::Later(DecisionFuture::new(request.start()))),
        }
    }

    /// Prepares the call for another charge.
    #[inline(always)]
    fn begin(&mut self) {
        if self.registry.is_none() {
            let registry = current();
            self.charges.keep_parts(registry.backend().keeps_parts());
            // There is none to drop, which the compiler does not see.
            std::mem::forget(self.registry.replace(registry));
        }
    }

    #[inline(never)]
    fn charge_site(&mut self, site: &'static SiteName, numbers: &CallNumbers<'_>) {
        let Call { registry: Some(registry), charges } = self else { return };
        let (definition, overrides) =
            (DefinitionRef::Static(&site.definition), registry.backend().overrides());
        match site.check() {
            Ok(()) => charges.begin(definition, numbers, false, overrides),
            Err(_) if numbers.cost == Ok(0) => {}
            Err(clash) => {
                let shadow = definition.attribute.shadow;
                charges.fail(definition, numbers.cost, shadow, clash.into());
            }
        }
    }
}

/// Without keys.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("registry", &self.registry.as_deref()).finish_non_exhaustive()
    }
}
