//! What a limiter is.

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::AlgorithmSpec;
use crate::backend::Backend;
use crate::error::Error;
use crate::key::{Head, IntoKey, KeyHeads};
use crate::lane::LanePolicy;
use crate::name::{Name, intern};
use crate::on_store_error::OnStoreError;
use crate::policy::{Algorithm, Policy};
use crate::policy_id::PolicyId;
use crate::request::{AcquireRequest, PolicyCharge, max_wait};
use crate::store::Charge;

/// The properties that distinguish one limiter from another.
#[derive(Clone, Debug)]
pub(crate) struct Definition {
    /// Counted, so that the cache knows whether it is in use.
    pub(crate) name: Arc<str>,
    /// The same name without a count, unless there are too many.
    pub(crate) interned: Option<&'static str>,
    pub(crate) prefix: Box<str>,
    pub(crate) policy_id: PolicyId,
    pub(crate) function: Option<Box<str>>,
    pub(crate) on_store_error: Option<OnStoreError>,
    pub(crate) policy: Policy,
    pub(crate) spec: AlgorithmSpec,
    /// The head of its keys, from the fields above.
    pub(crate) key_heads: KeyHeads,
    /// The policy for the fast lane, from the fields above, if its calls may take it.
    pub(crate) lane: Option<LanePolicy>,
}

impl Definition {
    /// A limiter with the registry's [`OnStoreError`].
    pub(crate) fn new(
        name: Arc<str>,
        prefix: &str,
        function: Option<&str>,
        policy: Policy,
        spec: AlgorithmSpec,
    ) -> Self {
        let (interned, policy_id) = (intern(&name), PolicyId::new(prefix, &name));
        let key_heads = KeyHeads::new(Head { prefix, name: &name, shape: &spec, function });
        let lane = interned.and_then(|name| LanePolicy::new(name, policy_id, &spec, key_heads.hash));
        let (prefix, function) = (prefix.into(), function.map(Into::into));
        let on_store_error = None;
        Definition {
            name,
            interned,
            prefix,
            policy_id,
            function,
            on_store_error,
            policy,
            spec,
            key_heads,
            lane,
        }
    }

    fn to_name(&self) -> Name {
        self.interned.map_or_else(|| Name::Shared(Arc::clone(&self.name)), Name::Static)
    }

    /// Adds the charge of one call to a request.
    #[inline]
    pub(super) fn add_to<M>(
        &self,
        request: &mut AcquireRequest,
        backend: &Backend,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<(), Error> {
        let charge = self.policy_charge(backend, key, cost, timeout);
        let charge = charge.map_err(|error| self.refused(backend, cost, error))?;
        Ok(request.push(charge)?)
    }

    /// Reports a call that is refused before it can be decided, and returns the error. One without cost takes no decision.
    #[cold]
    pub(super) fn refused(&self, backend: &Backend, cost: u64, error: Error) -> Error {
        if cost == 0 {
            return error;
        }
        if let Some(observers) = backend.observers() {
            observers.refused(&self.name, Algorithm::of(&self.spec), cost, &error);
        }
        error.log_refusal(&self.name);
        error
    }

    /// Returns what one call charges: nothing, if an operator has turned the policy off.
    pub(super) fn policy_charge<M>(
        &self,
        backend: &Backend,
        key: impl IntoKey<M>,
        cost: u64,
        timeout: Duration,
    ) -> Result<PolicyCharge, Error> {
        let Some(overridden) = backend.overrides().of(&self.prefix, &[&self.name]) else {
            return self.charge_of(backend, key, self.spec, cost, max_wait(timeout));
        };
        let spec = overridden.spec(Some(&self.spec), self.policy)?;
        let cost = if overridden.is_off() { 0 } else { cost };
        let mut charge = self.charge_of(backend, key, spec, cost, max_wait(timeout))?;
        if overridden.is_shadow() {
            (charge.charge.shadow, charge.charge.wait) = (true, 0);
        }
        Ok(charge)
    }

    /// Returns the charge of a call that is decided by this spec, which may have other numbers than the limiter.
    pub(crate) fn charge_of<M>(
        &self,
        backend: &Backend,
        key: impl IntoKey<M>,
        spec: AlgorithmSpec,
        cost: u64,
        wait: u64,
    ) -> Result<PolicyCharge, Error> {
        let kept = (spec == self.spec).then_some(&self.key_heads);
        let function = self.function.as_deref();
        let head = Head { prefix: &self.prefix, name: &self.name, shape: &spec, function };
        let mut parts = backend.key_writer(head, kept);
        key.write(&mut parts);
        let key_texts = parts.take_texts();
        let key = backend.finish_key(parts, &self.name, self.policy_id)?;
        let charge = Charge { key, spec, cost, wait, shadow: false };
        let on_store_error = backend.on_store_error(self.on_store_error);
        Ok(PolicyCharge { name: self.to_name(), site: None, charge, key_texts, on_store_error })
    }
}
