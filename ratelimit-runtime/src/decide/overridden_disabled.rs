//! Stands in for what overrides say of a policy in builds without the feature `overrides`: nothing.

use std::convert::Infallible;

use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::decide::overridden_key::{OverriddenKey, Written};
use crate::decide::overrides::Overrides;
use crate::key::{Fingerprint, KeyHead, PartsOfKey};
use crate::policy::Policy;

/// What the overrides of a registry say of a policy: nothing.
#[derive(Debug, Default)]
pub(crate) struct KnownOverride {}

/// What an override makes of a call, which no value of exists.
#[derive(Debug)]
pub(crate) struct Overridden {
    pub(crate) is_off: bool,
    pub(crate) is_shadow: bool,
    pub(crate) numbers: Result<AlgorithmSpec, InvalidPolicy>,
    none: Infallible,
}

/// Numbers that a key may override, which no value of exists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByKey {
    pub(crate) is_off: bool,
    none: Infallible,
}

/// The same for literal numbers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByHash {
    none: Infallible,
}

impl KnownOverride {
    #[inline]
    pub(crate) fn is_none(&self, _overrides: &Overrides) -> bool {
        true
    }

    #[inline]
    pub(crate) fn by_key_alone(&self, _overrides: &Overrides) -> Option<ByHash> {
        None
    }

    pub(super) fn get<'h>(
        &self,
        _overrides: &Overrides,
        _written: Written<'_>,
        _computed: Option<&Result<Policy, InvalidPolicy>>,
        _head: impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
    ) -> Option<Overridden> {
        None
    }

    pub(super) fn of_known_key(
        &self,
        by_key: &ByKey,
        _looked_up: Fingerprint,
    ) -> Option<Option<OverriddenKey>> {
        match by_key.none {}
    }

    pub(super) fn plain_of_known_key(
        &self,
        by_key: &ByKey,
        _looked_up: Fingerprint,
    ) -> Option<Option<(PlainSpec, Fingerprint)>> {
        match by_key.none {}
    }

    pub(super) fn of_key<'h>(
        &self,
        _overrides: &Overrides,
        _written: Written<'_>,
        _by_key: &ByKey,
        _key: (Fingerprint, PartsOfKey<'_>),
        _head: impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
        _hash: impl Fn(&AlgorithmSpec, PartsOfKey<'_>) -> Fingerprint,
    ) -> Option<OverriddenKey> {
        None
    }
}

impl Overridden {
    pub(crate) fn has_keys(&self) -> bool {
        match self.none {}
    }

    pub(crate) fn by_key(&self, _policy: Option<&Result<Policy, InvalidPolicy>>) -> Option<ByKey> {
        match self.none {}
    }
}

impl ByHash {
    pub(crate) fn of_policy(self, _policy: &Policy) -> ByKey {
        match self.none {}
    }

    pub(crate) fn by_key(self) -> ByKey {
        match self.none {}
    }
}

impl ByKey {
    pub(crate) fn needs_parts(&self) -> bool {
        match self.none {}
    }
}
