//! A call of a limited function, as its generated prologue builds it.

mod blocking;

use std::fmt;
use std::mem::{self, ManuallyDrop};
use std::time::Duration;

use super::Checked;
use super::bound::{Bound, BoundCall, BoundFuture};
use super::charged::AttributeCall;
use super::future::{Decided, DecisionFuture};
use super::pausables::Pausables;
use crate::decide::charges::{CallNumbers, Charges};
use crate::decide::decision::Decision;
use crate::decide::definition::{AttributeOptions, DefinitionRef};
use crate::decide::pausing::Pausable;
use crate::decide::request::max_wait;
use crate::key::{AddressText, KeyPart};
use crate::policy::Policy;
use crate::usage::call_site::{CallSite, SiteName};
use crate::usage::context;
use crate::usage::registry::Registry;
use crate::usage::registry::current::{CurrentBackend, current};

/// A call that is being put together: for each policy a charge, followed by the parts of its key.
pub struct Call {
    /// Where it is decided. `None` before the first charge, unless the call names a registry.
    backend: ManuallyDrop<Option<CurrentBackend>>,
    charges: ManuallyDrop<Charges<'static>>,
}

impl Call {
    /// Starts a call that the current registry decides.
    #[inline]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Call { backend: ManuallyDrop::new(None), charges: ManuallyDrop::new(Charges::new(false)) }
    }

    /// Starts a call that this registry decides.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        let charges = ManuallyDrop::new(Charges::new(registry.backend().keeps_parts()));
        Call { backend: ManuallyDrop::new(Some(CurrentBackend::own(registry))), charges }
    }

    /// Starts the charge of a policy with literal numbers and a literal cost, for which the call waits for at most `wait`
    /// microseconds, a shadow for none. A cost of 0 adds no charge.
    pub fn charge_literal(&mut self, site: &'static CallSite, closure: &'static str, cost: u64, wait: u64) {
        let site = site.resolve(closure);
        self.begin();
        let Call { backend, charges } = self;
        let Some(backend) = &**backend else { return };
        if let Some(literal) = site.definition.literal()
            && cost > 0
            && let definition = DefinitionRef::Static(&site.definition)
            && charges.begin_literal(definition, literal, (cost, wait), false, backend.overrides())
        {
            return;
        }
        self.charge_site(site, &CallNumbers { policy: None, cost: &Ok(cost), wait: Ok(wait) });
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
        self.charge_site(site, &CallNumbers { policy: None, cost: &cost, wait: timeout.map(max_wait) });
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
        self.charge_site(
            site,
            &CallNumbers { policy: Some(&policy), cost: &cost, wait: timeout.map(max_wait) },
        );
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
    #[inline(always)]
    pub fn decide(&mut self) -> Option<Decided> {
        if self.charges.are_by_key() { self.decide_by_key() } else { self.decide_only() }
    }

    /// Decides a call as [`decide`](Self::decide) does, unless all its policies are skipped: then there is nothing to decide.
    #[inline(always)]
    pub fn decide_unless_skipped(&mut self) -> Option<Decided> {
        if self.backend.is_none() { None } else { self.decide() }
    }

    #[inline(never)]
    fn decide_only(&mut self) -> Option<Decided> {
        // Without one, there is no charge.
        let backend = self.backend.as_ref()?;
        match backend.decide_only(&self.charges, &AttributeCall) {
            Some(decision) => decision.map(Decided::of),
            None => self.decide_others(),
        }
    }

    #[inline(never)]
    fn decide_by_key(&mut self) -> Option<Decided> {
        match self.backend.as_ref()?.decide_by_key(&self.charges, &AttributeCall) {
            Some(decision) => decision.map(Decided::of),
            None => self.decide_others(),
        }
    }

    #[inline(never)]
    fn decide_others(&mut self) -> Option<Decided> {
        match self.backend.as_ref()?.decide_others(&mut self.charges, &AttributeCall) {
            Ok(decision) => decision.map(Decided::of),
            Err(request) => Some(Decided::Later(DecisionFuture::new(request.start()))),
        }
    }

    /// Decides a call whose body gets the decision.
    pub fn decide_bound(&mut self) -> Bound {
        let Call { backend, charges } = self;
        let Some(backend) = &**backend else { return Bound::Decided(Ok(Decision::unlimited())) };
        if charges.is_empty() {
            return Bound::Decided(Ok(Decision::unlimited()));
        }
        match backend.decide(charges, &BoundCall) {
            Ok(decision) => Bound::of(decision),
            Err(request) => Bound::Later(BoundFuture::new(request.start())),
        }
    }

    /// Returns the keys that the output may pause.
    pub fn pausable(&mut self) -> Pausables {
        let Call { backend, charges } = self;
        let Some(backend) = &**backend else { return Pausables(Vec::new()) };
        backend.close(charges);
        let pausable = charges.iter().filter_map(|charge| {
            let AttributeOptions { index, pauses, .. } = charge.definition.attribute;
            let index = index.filter(|_| pauses)?;
            Some((index, Pausable::new(backend, charge, charges.parts_of(charge))?))
        });
        Pausables(pausable.collect())
    }

    /// Prepares the call for another charge.
    #[inline(always)]
    fn begin(&mut self) {
        if self.backend.is_none() {
            let backend = current();
            self.charges.keep_parts(backend.keeps_parts());
            // There is none to drop, which the compiler does not see.
            mem::forget(self.backend.replace(backend));
        }
    }

    #[inline(never)]
    fn charge_site(&mut self, site: &'static SiteName, numbers: &CallNumbers<'_>) {
        let Call { backend, charges } = self;
        let Some(backend) = &**backend else { return };
        let (definition, overrides) = (DefinitionRef::Static(&site.definition), backend.overrides());
        match site.check() {
            Ok(()) => charges.begin(definition, numbers, false, overrides),
            // What follows are the parts of its key.
            Err(_) if *numbers.cost == Ok(0) => charges.close(),
            Err(clash) => {
                let shadow = definition.attribute.shadow;
                charges.fail(definition, numbers.cost.clone(), shadow, clash.into());
            }
        }
    }
}

/// Most calls own nothing, which is seen at once. What others do is not compiled into each function.
impl Drop for Call {
    #[inline(always)]
    fn drop(&mut self) {
        if matches!(*self.backend, Some(CurrentBackend::Own(_))) || self.charges.own_memory() {
            drop_owned(self);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_owned(Call { backend, charges }: &mut Call) {
    drop(backend.take());
    drop(mem::replace(&mut **charges, Charges::new(false)));
}

/// Without keys.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("backend", &*self.backend).finish_non_exhaustive()
    }
}
