//! The four attributes, and the arguments of each.

use proc_macro2::Ident;

/// One of the four attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Rate,
    Count,
    Funnel,
    Window,
}

const SHARED: [&str; 12] = [
    "key",
    "key_type",
    "prefix",
    "name",
    "cost",
    "timeout",
    "fallback",
    "on_store_error",
    "skip_when",
    "charge_when",
    "registry",
    "crate",
];

/// The values of `on_store_error`.
pub(crate) const ON_STORE_ERROR: [&str; 3] = ["local", "allow", "deny"];

/// The values of `key_type`.
pub(crate) const KEY_TYPES: [&str; 4] = ["IP", "USER", "METHOD", "CUSTOM"];

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Rate, Kind::Count, Kind::Funnel, Kind::Window];

    /// Returns the name of the attribute.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate_limit",
            Kind::Count => "count_limit",
            Kind::Funnel => "funnel_limit",
            Kind::Window => "window_limit",
        }
    }

    /// Returns the attribute of this name.
    pub(crate) fn named(name: &Ident) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| name == kind.name())
    }

    /// Returns the arguments that not all attributes have. The first two may be positional.
    pub(crate) fn own(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["rate", "burst", "refill", "warmup", "lease"],
            Kind::Count => &["limit", "period", "lease"],
            Kind::Funnel => &["capacity", "leak_rate", "drain"],
            Kind::Window => &["limit", "period", "precision"],
        }
    }

    /// Returns the arguments without a value.
    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["borrow", "pass_args", "shadow"],
            Kind::Count => &["aligned", "pass_args", "shadow"],
            Kind::Funnel => &["queue", "pass_args", "shadow"],
            Kind::Window => &["pass_args", "shadow"],
        }
    }

    /// Returns all arguments.
    pub(crate) fn arguments(self) -> Vec<&'static str> {
        [self.own(), &SHARED, self.flags()].concat()
    }
}
