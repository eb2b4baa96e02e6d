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
    pub(super) backend: u64,
    pub(super) definition: Arc<Definition>,
    pub(super) cost: u64,
    /// The hash of the key of the policy as it is written.
    pub(super) key: Result<Fingerprint, MissingKey>,
    /// The parts of the key, if their texts may be wanted or another key may have to be made of them. In a box, because a charge is moved
    /// several times before it is decided, and most have none.
    pub(super) parts: Option<Box<KeyParts>>,
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
        if *id == backend.id() && self.is_as_written(&call) { call.decide_plain_key(*key) } else { None }
    }

    /// Adds the charge to a call of this backend. One that is turned off is added only if it costs nothing.
    pub(crate) fn add_to<'a>(
        &'a self,
        charges: &mut Charges<'a>,
        backend: &'a Arc<Backend>,
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
            Ok(key) if self.is_as_written(&call) => {
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

    /// Whether it is decided by the numbers of the policy as it is written. One that was made by them without its parts always is, even if
    /// operators have changed them in between.
    #[inline]
    fn is_as_written(&self, call: &LimiterCall<'_>) -> bool {
        self.parts.is_none() || call.is_as_written()
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
