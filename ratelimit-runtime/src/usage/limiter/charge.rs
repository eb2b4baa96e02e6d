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
use crate::key::{Fingerprint, KeyParts};

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
    /// The hash of the key of the policy as it is written, and the parts of which another one would be made.
    pub(super) key: Result<(Fingerprint, KeyParts), MissingKey>,
}

impl Charge {
    /// Decides the only charge of a call by the lock-free steps of the memory store, if that is possible.
    #[inline]
    pub(crate) fn decide_alone(&self, backend: &Arc<Backend>) -> Option<Result<Decision, Error>> {
        let Charge { backend: id, definition, cost, key: Ok((key, _)) } = self else { return None };
        let call = LimiterCall { backend, definition, cost: *cost, timeout: Duration::ZERO };
        if *id == backend.id() && call.is_as_written() { call.decide_plain_key(*key) } else { None }
    }

    /// Adds the charge to a call of this backend. One that is turned off is added only if it costs nothing.
    pub(crate) fn add_to<'a>(
        &'a self,
        charges: &mut Charges<'a>,
        backend: &'a Arc<Backend>,
        is_free: bool,
    ) -> Result<(), InvalidPolicy> {
        let Charge { backend: id, definition, cost, key } = self;
        if *id != backend.id() {
            return Err(InvalidPolicy::new("charges", "belong to a limiter of another registry"));
        }
        let cost = if is_free { 0 } else { *cost };
        let call = LimiterCall { backend, definition, cost, timeout: Duration::ZERO };
        match key {
            Ok((key, parts)) if call.is_as_written() => {
                let (counted, numbers) = (DefinitionRef::Counted(definition), definition.limiter_numbers());
                charges.add_literal(counted, numbers, cost, (*key, parts.all()));
            }
            Ok((_, parts)) => {
                call.add_to(charges);
                charges.kept_key(parts.all());
            }
            Err(missing) => {
                call.add_to(charges);
                charges.missing(*missing);
            }
        }
        Ok(())
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
