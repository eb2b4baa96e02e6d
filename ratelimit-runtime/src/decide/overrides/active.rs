//! An override that policies look up.

use std::sync::atomic::{AtomicBool, Ordering};

use super::entry::Entry;
use crate::algorithm::AlgorithmSpec;
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::log::log;
use crate::policy::{Number, Policy};

/// An override that policies look up.
#[derive(Debug)]
pub(crate) struct ActiveOverride {
    settings: Entry,
    /// Those of the settings, so that no call parses text.
    numbers: Vec<Number>,
    /// Whether it is logged that it does not fit some policy of its name.
    misfit_is_logged: AtomicBool,
}

impl ActiveOverride {
    /// # Errors
    ///
    /// If the value of a number is invalid by itself.
    pub(super) fn new(settings: Entry) -> Result<Self, InvalidPolicy> {
        let numbers = settings.numbers.iter();
        let numbers = numbers.map(|(argument, value)| Number::new(argument, value.as_argument()));
        let numbers = numbers.collect::<Result<_, _>>()?;
        Ok(ActiveOverride { settings, numbers, misfit_is_logged: AtomicBool::new(false) })
    }

    pub(super) fn settings(&self) -> &Entry {
        &self.settings
    }

    pub(crate) fn is_off(&self) -> bool {
        self.settings.off
    }

    pub(crate) fn is_shadow(&self) -> bool {
        self.settings.shadow == Some(true)
    }

    pub(crate) fn is_blocked(&self) -> bool {
        self.settings.blocked
    }

    /// Returns when it ends, in seconds since the Unix epoch.
    pub(crate) fn until(&self) -> Option<u64> {
        self.settings.until
    }

    /// Whether it fits the switch of a policy, whatever its numbers: no override ends the `shadow` of an attribute.
    pub(crate) fn fits(&self, is_shadow: bool) -> bool {
        self.settings.fits(is_shadow)
    }

    /// Returns the spec of a call of the policy, or `None` if the override does not fit it, and the policy decides as written.
    /// `as_written` is the spec of the policy if its numbers are literals.
    ///
    /// An overridden bucket is one with computed numbers: it has a state of its own, which overrides that follow each other share.
    pub(crate) fn spec(
        &self,
        as_written: Option<&AlgorithmSpec>,
        policy: Policy,
    ) -> Option<Result<AlgorithmSpec, InvalidPolicy>> {
        if self.numbers.is_empty() {
            return Some(as_written.map_or_else(|| policy.spec(), |as_written| Ok(*as_written)));
        }
        let changed = self.numbers.iter().try_fold(policy, |policy, number| policy.with_number(*number));
        match changed.and_then(|changed| changed.computed().spec()) {
            Ok(spec) => Some(Ok(spec)),
            Err(invalid) => {
                if !self.misfit_is_logged.swap(true, Ordering::Relaxed) {
                    let Entry { policy, key, .. } = &self.settings;
                    let (policy, key) = (&**policy, (!key.is_empty()).then(|| key.join(" ")));
                    let key = key.as_deref();
                    log!(ERROR, policy, key, error = %invalid, "override ignored: it is invalid for this policy");
                }
                None
            }
        }
    }
}
