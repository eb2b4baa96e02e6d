//! An override in force.

use std::sync::atomic::{AtomicBool, Ordering};

use super::entry::Override;
use crate::algorithm::AlgorithmSpec;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::log;
use crate::policy::Policy;

/// An override in force.
#[derive(Debug)]
pub(crate) struct ActiveOverride {
    settings: Override,
    /// Whether it is logged that it does not fit some policy of its name.
    misfit_is_logged: AtomicBool,
}

impl ActiveOverride {
    pub(super) fn new(settings: Override) -> Self {
        ActiveOverride { settings, misfit_is_logged: AtomicBool::new(false) }
    }

    pub(super) fn settings(&self) -> &Override {
        &self.settings
    }

    pub(crate) fn is_off(&self) -> bool {
        self.settings.off
    }

    pub(crate) fn is_shadow(&self) -> bool {
        self.settings.shadow == Some(true)
    }

    /// Returns the spec of a call of the policy. `as_written` is the spec of the policy if its numbers are literals, whose keys
    /// the call keeps. A policy that the override does not fit, such as a limiter that was created later, decides as written.
    pub(crate) fn spec(
        &self,
        as_written: Option<&AlgorithmSpec>,
        policy: Policy,
    ) -> Result<AlgorithmSpec, InvalidPolicy> {
        self.settings.spec(as_written, policy).or_else(|invalid| {
            if !self.misfit_is_logged.swap(true, Ordering::Relaxed) {
                let policy = &*self.settings.policy;
                log!(ERROR, policy, error = %invalid, "override does not fit a policy of this name, which decides without it");
            }
            as_written.map_or_else(|| policy.spec(), |as_written| Ok(*as_written))
        })
    }
}
