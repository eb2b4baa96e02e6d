//! Stands in for overrides in builds without the feature `overrides`. There are none.

use std::sync::Arc;

use crate::algorithm::AlgorithmSpec;
use crate::base::invalid_policy::InvalidPolicy;
use crate::policy::Policy;

/// The overrides of a registry: none.
#[derive(Debug, Default)]
pub(crate) struct Overrides;

/// Returns what is wrong with overrides.
pub(crate) fn problems() -> Vec<String> {
    Vec::new()
}

/// An override that no value of exists.
#[derive(Debug)]
pub(crate) enum ActiveOverride {}

impl Overrides {
    #[inline]
    pub(crate) fn version(&self) -> u64 {
        0
    }

    pub(crate) fn of(&self, _prefix: &str, _names: &[&str]) -> (u64, Option<Arc<ActiveOverride>>) {
        (0, None)
    }
}

impl ActiveOverride {
    pub(crate) fn is_off(&self) -> bool {
        match *self {}
    }

    pub(crate) fn is_shadow(&self) -> bool {
        match *self {}
    }

    pub(crate) fn fits(&self, _is_shadow: bool) -> bool {
        match *self {}
    }

    pub(crate) fn spec(
        &self,
        _as_written: Option<&AlgorithmSpec>,
        _policy: Policy,
    ) -> Option<Result<AlgorithmSpec, InvalidPolicy>> {
        match *self {}
    }
}
