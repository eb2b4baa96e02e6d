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

/// What `on_store_error` can be.
pub(crate) const ON_STORE_ERROR: [&str; 3] = ["local", "allow", "deny"];

/// What `key_type` can be.
pub(crate) const KEY_TYPES: [&str; 4] = ["IP", "USER", "METHOD", "CUSTOM"];

impl Kind {
    pub(crate) const ALL: [Kind; 4] = [Kind::Rate, Kind::Count, Kind::Funnel, Kind::Window];

    /// The attribute as it is written.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Rate => "rate_limit",
            Kind::Count => "count_limit",
            Kind::Funnel => "funnel_limit",
            Kind::Window => "window_limit",
        }
    }

    /// The attribute of this name.
    pub(crate) fn named(name: &Ident) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| name == kind.name())
    }

    /// The arguments with a value that only this attribute has. The first two can be given by position.
    pub(crate) fn own(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["rate", "burst", "refill", "warmup"],
            Kind::Count => &["limit", "period"],
            Kind::Funnel => &["capacity", "leak_rate", "drain"],
            Kind::Window => &["limit", "period", "precision"],
        }
    }

    pub(crate) fn flags(self) -> &'static [&'static str] {
        match self {
            Kind::Rate => &["borrow", "pass_args", "shadow"],
            Kind::Count => &["aligned", "pass_args", "shadow"],
            Kind::Funnel => &["queue", "pass_args", "shadow"],
            Kind::Window => &["pass_args", "shadow"],
        }
    }

    pub(crate) fn legal(self) -> Vec<&'static str> {
        [self.own(), &SHARED, self.flags()].concat()
    }
}
