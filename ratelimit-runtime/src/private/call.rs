//! A call of a limited function, as its generated prologue builds it, and the fast lane on which most calls in process are
//! decided.
//!
//! A call starts on the fast lane if the registry decides in process. It stays there with up to three charges of plain policies
//! (`SiteName::lane`), which the store decides without a lock or a list. With any other charge, and if the store does not decide
//! it that way, it takes the general path.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use super::Checked;
use super::charged::Refusal;
use super::future::DecisionFuture;
use super::general_call::GeneralCall;
use crate::backend::Backend;
use crate::call_site::{CallSite, SiteName};
use crate::context;
use crate::error::missing_key::MissingKey;
use crate::key::{Fingerprint, Key, KeyHasher, KeyPart};
use crate::lane::LanePolicy;
use crate::policy::Policy;
use crate::registry::Registry;
use crate::registry::current::{CurrentRegistry, current};
use crate::request::max_wait;
use crate::store::{Charge, INLINE, MemoryStore, PlainCharge, PlainOutcome};

/// A call that is being put together: for each policy a charge, followed by the parts of its key.
pub struct Call {
    /// The registry that decides it. `None` before the first charge, unless the call names one.
    registry: Option<CurrentRegistry>,
    /// Whether it is on the fast lane.
    is_fast: bool,
    /// The charges there.
    charges: [Option<SiteCharge>; INLINE],
    /// How many of them are complete.
    complete: usize,
    /// The key of the last charge, if it is not complete.
    open: Option<OpenKey>,
    /// The call, once it has left the fast lane.
    general: Option<GeneralCall>,
}

/// A charge of an attribute's policy on the fast lane.
#[derive(Clone, Copy)]
struct SiteCharge {
    site: &'static SiteName,
    lane: &'static LanePolicy,
    cost: u64,
    /// How long the call may wait, in microseconds.
    wait: u64,
    /// Without parts until the charge is complete.
    key: Fingerprint,
}

struct OpenKey {
    hasher: KeyHasher,
    has_parts: bool,
}

impl Call {
    /// Starts a call that the current registry decides.
    #[inline]
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        let (charges, open, general) = ([None; INLINE], None, None);
        Call { registry: None, is_fast: false, charges, complete: 0, open, general }
    }

    /// Starts a call that this registry decides.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        let mut call = Call::new();
        call.start(CurrentRegistry::Own(registry.clone()));
        call
    }

    /// Starts the charge of a policy with literal numbers and a literal cost, for which the call waits for at most `wait`
    /// microseconds. A cost of 0 adds no charge.
    pub fn charge_literal(&mut self, site: &'static CallSite, closure: &'static str, cost: u64, wait: u64) {
        let site = site.resolve(closure);
        self.begin();
        if self.is_fast
            && cost > 0
            && let Some(lane) = &site.lane
            && let Some(free) = self.charges.get_mut(self.complete)
        {
            let LanePolicy { key_head, .. } = lane;
            *free = Some(SiteCharge { site, lane, cost, wait, key: key_head.without_parts() });
            self.open = Some(OpenKey { hasher: key_head.hasher(), has_parts: false });
            return;
        }
        let (general, backend) = self.general();
        general.charge(site, site.literal_policy(), Ok(cost), Ok(wait), backend);
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
        let (general, backend) = self.general();
        general.charge(site, policy, cost, timeout.map(max_wait), backend);
    }

    /// Adds a part to the key of the last charge.
    #[inline(always)]
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        let Some(open) = &mut self.open else { return self.general_part(part) };
        open.has_parts = true;
        if let Err(missing) = part.add_to(&mut open.hasher) {
            self.missing(missing);
        }
    }

    #[inline(never)]
    fn general_part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(general) = &mut self.general {
            general.part(part);
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

    /// Decides the call. Returns `None` if it is admitted at once, and charged nothing that may be refunded.
    pub fn decide(&mut self) -> Option<DecisionFuture> {
        match self.decide_one() {
            Some(outcome) if outcome.admitted => None,
            Some(outcome) => self.refuse(&outcome),
            None => self.decide_others(),
        }
    }

    /// Decides a call with a single charge on the fast lane, whose key is not complete yet.
    #[inline(always)]
    fn decide_one(&self) -> Option<PlainOutcome<1>> {
        let ([Some(charge), None, None], Some(open)) = (&self.charges, &self.open) else { return None };
        let memory = self.memory().filter(|_| charge.wait == 0 || charge.lane.reserves())?;
        let key = if open.has_parts { open.hasher.finish() } else { charge.key };
        memory.decide_plain(charge.lane.charge(key, charge.cost))
    }

    /// Refuses a call with a single charge, unless it waits.
    #[inline(never)]
    fn refuse(&mut self, outcome: &PlainOutcome<1>) -> Option<DecisionFuture> {
        match self.charges[0] {
            Some(SiteCharge { site, lane, cost, wait: 0, .. }) => {
                let refusal =
                    Refusal { policy: Some(site.options.policy), error: lane.limited(cost, outcome) };
                Some(DecisionFuture::ready(Err(refusal)))
            }
            _ => self.decide_others(),
        }
    }

    /// Decides a call with several charges on the fast lane, and any other on the general path, which also reports the refusals of
    /// several policies.
    #[inline(never)]
    fn decide_others(&mut self) -> Option<DecisionFuture> {
        self.close();
        let admitted = self.memory().is_some_and(|memory| match &self.charges {
            [Some(a), None, None] if !a.lane.is_common() => admits([a], memory),
            [Some(a), Some(b), None] => admits([a, b], memory),
            [Some(a), Some(b), Some(c)] => admits([a, b, c], memory),
            _ => false,
        });
        // Without a registry, there is no charge.
        if admitted || self.registry.is_none() {
            return None;
        }
        let (general, backend) = self.general();
        general.decide(backend)
    }

    /// Returns the store, if the call is on the fast lane.
    #[inline]
    fn memory(&self) -> Option<&Arc<MemoryStore>> {
        self.registry.as_ref().filter(|_| self.is_fast)?.backend().memory()
    }

    /// Prepares the call for another charge.
    #[inline(always)]
    fn begin(&mut self) {
        match self.registry {
            None => self.start(current()),
            Some(_) => self.close(),
        }
    }

    #[inline]
    fn start(&mut self, registry: CurrentRegistry) {
        self.is_fast = registry.backend().has_lane();
        self.registry = Some(registry);
    }

    /// Completes the last charge.
    #[inline(never)]
    fn close(&mut self) {
        let Some(OpenKey { hasher, has_parts }) = self.open.take() else { return };
        if has_parts && let Some(Some(charge)) = self.charges.get_mut(self.complete) {
            charge.key = hasher.finish();
        }
        self.complete += 1;
    }

    /// Returns the call as the general path has it. It leaves the fast lane.
    #[cold]
    fn general(&mut self) -> (&mut GeneralCall, &Arc<Backend>) {
        self.is_fast = false;
        let Call { registry, charges, complete, general, .. } = self;
        let backend = registry.get_or_insert_with(current).backend();
        let leave = || {
            let mut general = GeneralCall::default();
            let complete = charges.iter().take(*complete).flatten();
            complete.for_each(|charge| charge.push_to(&mut general, backend));
            general
        };
        (general.get_or_insert_with(leave), backend)
    }

    fn context_part(&mut self, part: Result<impl Display, MissingKey>) {
        match part {
            Ok(part) => self.part(&part),
            Err(missing) => self.missing(missing),
        }
    }

    /// Drops the last charge, because its key lacks a part.
    #[cold]
    fn missing(&mut self, missing: MissingKey) {
        let dropped = self.open.take().and_then(|_| *self.charges.get(self.complete)?);
        let (general, _) = self.general();
        match dropped {
            Some(charge) => general.fail(charge.site, charge.cost, false, missing.into()),
            None => general.missing(missing),
        }
    }
}

impl SiteCharge {
    #[inline]
    fn plain(&self) -> PlainCharge {
        self.lane.charge(self.key, self.cost)
    }

    fn push_to(&self, general: &mut GeneralCall, backend: &Backend) {
        let SiteCharge { site, cost, wait, key, .. } = *self;
        // A charge on the fast lane is of a policy with literal numbers.
        if let Some(&spec) = site.literal_spec() {
            let key = Key::hashed(key, site.policy);
            let charge = Charge { key, spec, cost, wait, shadow: site.options.shadow };
            general.push(site, charge, None, backend);
        }
    }
}

/// Makes the charges if all are admitted at once.
///
/// None are made of a call that waits for a window if it is refused: such calls queue, and may overtake none that wait already. A
/// call that waits for buckets only does so if it is refused.
fn admits<const N: usize>(charges: [&SiteCharge; N], memory: &MemoryStore) -> bool {
    let may_queue =
        charges.iter().any(|charge| charge.wait > 0) && charges.iter().any(|charge| !charge.lane.reserves());
    !may_queue
        && memory.decide_all_plain(charges.map(SiteCharge::plain)).is_some_and(|outcome| outcome.admitted)
}

/// Without keys.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("registry", &self.registry.as_deref()).finish_non_exhaustive()
    }
}
