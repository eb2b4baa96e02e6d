//! A charge of a limiter, for a list that is decided all or nothing.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::acquire::LimiterCall;
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::backend::Backend;
use crate::decide::charges::Charges;
use crate::decide::decision::Decision;
use crate::decide::definition::{Definition, DefinitionRef};
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;
use crate::key::{Fingerprint, IntoKey, KeyParts, PartsOfKey};

/// A charge of one limiter, to be decided together with others by
/// [`Registry::try_acquire_all`](crate::Registry::try_acquire_all).
///
/// ```
/// # use ratelimits::{Registry, TokenBucket};
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let registry = Registry::in_memory();
/// let reports = registry.limiter("reports", TokenBucket::per_second(2).burst(10))?;
/// let charges = ["tenant-7", "tenant-8"].map(|tenant| reports.charge(tenant));
/// registry.try_acquire_all(charges).await?;
/// # Ok(()) }
/// ```
#[must_use = "a charge does nothing until `Registry::try_acquire_all` decides it"]
pub struct Charge {
    /// The id of the limiter's backend.
    backend: u64,
    definition: Arc<Definition>,
    cost: u64,
    /// The hash of the key of the policy as it is written.
    key: Result<Fingerprint, MissingKey>,
    /// The parts of the key, if their texts may be wanted or another key may have to be made of them. In a box, because a charge is moved
    /// several times before it is decided, and most have none.
    parts: Option<Box<KeyParts>>,
}

/// A list of charges is moved before it is decided.
const _: () = assert!(size_of::<Charge>() <= 56);

impl Charge {
    /// Makes the charge of a call.
    #[inline]
    pub(super) fn new<M>(call: &LimiterCall<'_>, key: &impl IntoKey<M>) -> Self {
        let LimiterCall { backend, definition, cost, .. } = *call;
        let keeps_parts = backend.keeps_parts() || !call.is_as_written();
        let mut parts = keeps_parts.then(Box::<KeyParts>::default);
        let key = call.hash(key, parts.as_deref_mut());
        Charge { backend: backend.id(), definition: Arc::clone(definition), cost, key, parts }
    }

    /// Decides the only charge of a call by the lock-free steps of the memory store, if that is possible.
    #[inline]
    pub(crate) fn decide_alone(&self, backend: &Arc<Backend>) -> Option<Result<Decision, Error>> {
        let Charge { backend: id, cost, key: Ok(key), .. } = self else { return None };
        let call = self.call(backend, *cost);
        let is_as_written = call.is_as_written() || self.parts.is_none();
        if *id == backend.id() && is_as_written { call.decide_plain_key(*key) } else { None }
    }

    /// Adds a charge of a list to a call of this backend. One that is turned off is added only if it costs nothing.
    pub(crate) fn add_to<'a>(
        &'a self,
        charges: &mut Charges<'a>,
        backend: &'a Arc<Backend>,
        list: &[Charge],
        is_free: bool,
    ) -> Result<(), InvalidPolicy> {
        let Charge { backend: id, definition, cost, key, parts } = self;
        if *id != backend.id() {
            return Err(InvalidPolicy::new("charges", "belong to a limiter of another registry"));
        }
        let cost = if is_free { 0 } else { *cost };
        let call = self.call(backend, cost);
        let parts = parts.as_ref().map_or(PartsOfKey::NONE, |parts| parts.all());
        match key {
            Ok(key) if call.is_as_written() || self.policy_lacks_parts(list) => {
                let (counted, numbers) = (DefinitionRef::Counted(definition), definition.limiter_numbers());
                charges.add_literal(counted, numbers, cost, (*key, parts));
            }
            Ok(_) => {
                call.add_to(charges);
                charges.kept_key(parts);
            }
            Err(missing) => {
                call.add_to(charges);
                charges.missing(*missing);
            }
        }
        Ok(())
    }

    #[inline]
    fn call<'a>(&'a self, backend: &'a Arc<Backend>, cost: u64) -> LimiterCall<'a> {
        LimiterCall { backend, definition: &self.definition, cost, timeout: Duration::ZERO }
    }

    /// Whether a charge of the policy has no parts. It is decided by the numbers of the policy as it is written, even if operators have
    /// changed them since, as no other key can be made. So are the others then: one call has the same numbers for all of them.
    #[cold]
    fn policy_lacks_parts(&self, list: &[Charge]) -> bool {
        let policy = self.definition.id;
        list.iter().any(|charge| charge.definition.id == policy && charge.parts.is_none())
    }
}

/// Without the key.
impl fmt::Debug for Charge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut charge = f.debug_struct("Charge");
        charge.field("name", &self.definition.name.as_str()).field("cost", &self.cost);
        if let Err(error) = &self.key {
            charge.field("error", error);
        }
        charge.finish_non_exhaustive()
    }
}

#[cfg(feature = "overrides")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::overrides::OverrideSet;
    use crate::policy::FixedWindow;
    use crate::usage::registry::Registry;

    #[tokio::test]
    async fn charges_that_were_made_before_an_override_are_decided_without_it() {
        let registry = Registry::in_memory();
        let daily =
            registry.limiter("charges.daily", FixedWindow::new(3, Duration::from_secs(86_400))).unwrap();
        let set = |overrides: &str| set(&registry, overrides);
        daily.try_acquire("ann").await.unwrap();
        let [as_written, beside] = ["ann", "bob"].map(|key| daily.charge(key));
        assert!(as_written.parts.is_none());
        set("[\"charges.daily\"]\nlimit = 1\n");
        let [overridden, late] = ["ann", "ann"].map(|key| daily.charge(key));
        assert!(overridden.parts.is_some());
        // What the key of the override would be made from is gone.
        registry.try_acquire_all([as_written, beside]).await.unwrap();
        assert!(registry.try_acquire_all([overridden]).await.unwrap_err().is_limited());
        set("# None.\n");
        registry.try_acquire_all([late]).await.unwrap();
        assert_eq!(daily.peek("ann").await.unwrap().remaining, 0);
    }

    #[tokio::test]
    async fn lists_have_one_set_of_numbers_for_each_policy() {
        let settings =
            ["limit = 1", "shadow = true", "off = true"].map(|it| format!("[\"charges.mixed\"]\n{it}\n"));
        let blocked = ["ann", "bob"].map(|key| format!("[\"charges.mixed\".keys.{key}]\nblocked = true\n"));
        for overrides in settings.into_iter().chain(blocked) {
            for is_reversed in [false, true] {
                let registry = Registry::in_memory();
                let limiter =
                    |name| registry.limiter(name, FixedWindow::new(3, Duration::from_secs(86_400))).unwrap();
                let (mixed, other) = (limiter("charges.mixed"), limiter("charges.other"));
                let made_before = mixed.charge("ann");
                set(&registry, &overrides);
                let mut list = [made_before, mixed.charge("ann"), other.charge("ann"), mixed.charge("bob")];
                if is_reversed {
                    list.reverse();
                }
                let decision = registry.try_acquire_all(list).await.unwrap();
                assert_eq!(decision.policies().len(), 4, "{overrides}");
                assert!(
                    decision.policies().iter().all(|policy| policy.limit == 3 && !policy.shadow),
                    "{decision:?}"
                );
                let list = [mixed.charge_n("ann", 2), mixed.charge("ann")];
                set(&registry, "# None.\n");
                // Both have their parts, and so count by what is in force now.
                assert!(registry.try_acquire_all(list).await.unwrap_err().is_limited());
                let [used, unused] = [mixed.peek("ann").await.unwrap(), mixed.peek("bob").await.unwrap()];
                assert_eq!((used.remaining, unused.remaining), (1, 2), "{overrides}");
            }
        }
    }

    fn set(registry: &Registry, overrides: &str) {
        registry.backend().overrides().replace(&Arc::new(OverrideSet::parse(overrides).unwrap()));
    }
}
