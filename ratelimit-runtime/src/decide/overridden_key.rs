//! What an override of a key is looked up for, and what it makes of a call. The same in builds without overrides, where there is none.

use crate::algorithm::AlgorithmSpec;
use crate::key::Fingerprint;
use crate::policy::Policy;

/// A policy as it is written.
#[derive(Clone, Copy)]
#[cfg_attr(not(feature = "overrides"), expect(dead_code, reason = "there are no overrides to look up"))]
pub(crate) struct Written<'a> {
    pub(crate) prefix: &'a str,
    /// The names by which overrides find it, the most specific first.
    pub(crate) names: [&'a str; 2],
    pub(crate) is_shadow: bool,
    /// Its numbers, if they are literals.
    pub(crate) literal: Option<(&'a AlgorithmSpec, Policy)>,
}

/// What the override of its key makes of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OverriddenKey {
    pub(crate) is_off: bool,
    pub(crate) is_shadow: bool,
    /// When the key is blocked no longer, in seconds since the Unix epoch.
    pub(crate) blocked: Option<Option<u64>>,
    pub(crate) spec: AlgorithmSpec,
    pub(crate) key: Fingerprint,
}
