//! A call of a limited function, as its generated prologue builds it, and the fast lane on which most calls in process are
//! decided.
//!
//! A call starts on the fast lane if the registry decides in process. It stays there with up to three charges of plain policies
//! (`SiteName::plain`), which the store decides without a lock or a list. With any other charge, and if the store does not decide
//! it that way, it takes the general path.

use std::fmt::{self, Display};
use std::sync::Arc;
use std::time::Duration;

use super::Checked;
use super::charged::Refusal;
use super::future::DecisionFuture;
use super::general_call::GeneralCall;
use crate::algorithm::AlgorithmSpec;
use crate::backend::Backend;
use crate::call_site::{LiteralPolicy, SiteName};
use crate::context;
use crate::decision::SinglePolicy;
use crate::error::missing_key::MissingKey;
use crate::error::{Error, Limited};
use crate::key::{Fingerprint, Key, KeyHasher, KeyPart};
use crate::policy::{Algorithm, Policy};
use crate::registry::Registry;
use crate::registry::current::{CurrentRegistry, current};
use crate::request::max_wait;
use crate::source::Source;
use crate::store::{INLINE, MemoryStore, PlainCharge, PlainOutcome};

/// A call that is being put together: for each policy a charge, followed by the parts of its key.
pub struct Call {
    registry: CurrentRegistry,
    /// Whether it is on the fast lane.
    is_fast: bool,
    /// The charges there.
    charges: [Option<SiteCharge>; INLINE],
    /// How many of them are complete.
    complete: usize,
    /// Hashes the key of the last charge, if it is not complete.
    hasher: Option<KeyHasher>,
    has_parts: bool,
    /// The call, once it has left the fast lane.
    general: Option<GeneralCall>,
}

/// A plain charge of an attribute's policy.
#[derive(Clone, Copy)]
struct SiteCharge {
    site: &'static SiteName,
    spec: &'static AlgorithmSpec,
    cost: u64,
    /// How long the call may wait, in microseconds.
    wait: u64,
    /// Without parts until the charge is complete.
    key: Fingerprint,
}

impl Call {
    /// Starts a call that the current registry decides.
    #[must_use]
    #[expect(clippy::new_without_default, reason = "only generated code makes one")]
    pub fn new() -> Self {
        Call::by(current())
    }

    /// Starts a call that this registry decides.
    #[must_use]
    pub fn on(registry: &Registry) -> Self {
        Call::by(CurrentRegistry::Own(registry.clone()))
    }

    #[inline]
    fn by(registry: CurrentRegistry) -> Self {
        let is_fast = registry.backend().memory().is_some();
        let (charges, general) = ([None; INLINE], None);
        Call { registry, is_fast, charges, complete: 0, hasher: None, has_parts: false, general }
    }

    /// Starts the charge of a policy with literal numbers and a literal cost, for which the call waits for at most `wait`
    /// microseconds. A cost of 0 adds no charge.
    pub fn charge_literal(&mut self, site: &'static SiteName, cost: u64, wait: u64) {
        self.close();
        if self.is_fast
            && cost > 0
            && let Some(LiteralPolicy { spec, key_head }) = site.plain()
            && let Some(free) = self.charges.get_mut(self.complete)
        {
            *free = Some(SiteCharge { site, spec, cost, wait, key: key_head.without_parts() });
            self.hasher = Some(key_head.hasher());
            self.has_parts = false;
            return;
        }
        let (general, backend) = self.general();
        general.charge(site, || site.literal_spec(), Ok(cost), Ok(wait), backend);
    }

    /// Starts the charge of a policy with computed numbers, for which the call waits for at most `timeout`. A cost of 0 adds no
    /// charge.
    pub fn charge(
        &mut self,
        site: &'static SiteName,
        policy: Checked<Policy>,
        cost: Checked<u64>,
        timeout: Checked<Duration>,
    ) {
        self.close();
        let (general, backend) = self.general();
        general.charge(site, || policy?.spec(), cost, timeout.map(max_wait), backend);
    }

    /// Adds a part to the key of the last charge.
    #[inline]
    pub fn part<M, T: KeyPart<M> + ?Sized>(&mut self, part: &T) {
        if let Some(hasher) = &mut self.hasher {
            self.has_parts = true;
            if let Err(missing) = part.add_to(hasher) {
                self.missing(missing);
            }
        } else if let Some(general) = &mut self.general {
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
        self.close();
        if self.is_fast
            && let Some(memory) = self.registry.backend().memory()
        {
            let decision = match &self.charges[..self.complete] {
                [] => return None,
                charges if may_queue(charges) => Lane::General,
                [Some(a)] => outcome([a], memory.decide_plain(a.plain())),
                [Some(a), Some(b)] => decide([a, b], memory),
                [Some(a), Some(b), Some(c)] => decide([a, b, c], memory),
                _ => Lane::General,
            };
            match decision {
                Lane::Admitted => return None,
                Lane::Refused(refusal) => return Some(DecisionFuture::ready(Err(refusal))),
                Lane::General => {}
            }
        }
        let (general, backend) = self.general();
        std::mem::take(general).decide(backend)
    }

    /// Completes the last charge.
    #[inline]
    fn close(&mut self) {
        let Some(hasher) = &self.hasher else { return };
        if self.has_parts
            && let Some(Some(charge)) = self.charges.get_mut(self.complete)
        {
            charge.key = hasher.finish();
        }
        self.hasher = None;
        self.complete += 1;
    }

    /// Returns the call as the general path has it. It leaves the fast lane.
    #[cold]
    fn general(&mut self) -> (&mut GeneralCall, &Arc<Backend>) {
        self.is_fast = false;
        let Call { registry, charges, complete, general, .. } = self;
        let backend = registry.backend();
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
        let hasher = self.hasher.take();
        let dropped = self.charges.get(self.complete).copied().flatten().filter(|_| hasher.is_some());
        let (general, _) = self.general();
        match dropped {
            Some(charge) => general.fail(charge.site, missing.into()),
            None => general.missing(missing),
        }
    }
}

impl SiteCharge {
    #[inline]
    fn plain(&self) -> PlainCharge<'_> {
        PlainCharge { key: &self.key, spec: self.spec, cost: self.cost }
    }

    fn push_to(&self, general: &mut GeneralCall, backend: &Backend) {
        let SiteCharge { site, spec, cost, wait, key } = *self;
        general.push(site, *spec, cost, wait, Key::hashed(key, site.policy), backend);
    }
}

/// What becomes of a call on the fast lane.
enum Lane {
    Admitted,
    Refused(Refusal),
    /// It takes the general path.
    General,
}

/// Whether the call waits for a window if it is refused. Such calls queue, and none may overtake those that wait already. A call
/// that waits for buckets only does so if it is refused.
#[inline]
fn may_queue(charges: &[Option<SiteCharge>]) -> bool {
    charges.iter().flatten().any(|charge| charge.wait > 0)
        && charges.iter().flatten().any(|charge| !charge.spec.reserves())
}

fn decide<const N: usize>(charges: [&SiteCharge; N], memory: &MemoryStore) -> Lane {
    outcome(charges, memory.decide_all_plain(&charges.map(SiteCharge::plain)))
}

#[inline]
fn outcome<const N: usize>(charges: [&SiteCharge; N], outcome: Option<PlainOutcome<N>>) -> Lane {
    match outcome {
        None => Lane::General,
        Some(outcome) if outcome.admitted => Lane::Admitted,
        Some(outcome) => refuse(&charges, &outcome),
    }
}

/// Refuses a call with a single charge that does not wait. Others take the general path, which reports all policies.
fn refuse<const N: usize>(charges: &[&SiteCharge; N], outcome: &PlainOutcome<N>) -> Lane {
    let ([SiteCharge { site, spec, cost, wait: 0, .. }], [snapshot]) = (&charges[..], &outcome.snapshots[..])
    else {
        return Lane::General;
    };
    let verdict = spec.verdict_plain(*snapshot, outcome.now, *cost);
    let policy = SinglePolicy::new(&site.name, Algorithm::of(spec), &verdict);
    let error = Error::Limited(Limited::of_one(policy, Source::Memory));
    Lane::Refused(Refusal { policy: Some(site.options.policy), error })
}

/// Without keys.
impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("registry", &*self.registry).finish_non_exhaustive()
    }
}
