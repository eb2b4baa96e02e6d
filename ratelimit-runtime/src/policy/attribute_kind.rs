//! The attributes and their arguments, by name.

use super::algorithm::Algorithm;
use crate::closest::closest;
use crate::error::invalid_policy::InvalidPolicy;

/// The attribute of an algorithm.
#[doc(hidden)]
#[derive(Debug)]
#[non_exhaustive]
pub struct AttributeKind {
    /// The name of the attribute.
    pub name: &'static str,
    /// The arguments that may be positional.
    pub positional: [&'static str; 2],
    /// The arguments that are numbers of the policy.
    pub numbers: &'static [&'static str],
    /// The other arguments with a value that not all attributes have.
    pub others: &'static [&'static str],
    /// The arguments without a value.
    pub flags: &'static [&'static str],
    unknown: &'static str,
    /// `unknown` with a suggestion, for each number.
    misspelled: &'static [&'static str],
    foreign: &'static str,
    fixed: &'static str,
}

/// The arguments with a value that all attributes have.
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

macro_rules! attribute {
    (
        $name:literal: $($number:literal)*, $list:literal;
        positional: $positional:expr; others: $others:expr; flags: $flags:expr;
    ) => {
        AttributeKind {
            name: $name,
            positional: $positional,
            numbers: &[$($number),*],
            others: &$others,
            flags: &$flags,
            unknown: concat!("has no such argument; its numbers are ", $list),
            misspelled: &[$(
                concat!("has no such argument; did you mean `", $number, "`? Its numbers are ", $list)
            ),*],
            foreign: concat!("is no argument of `", $name, "`; its numbers are ", $list),
            fixed: concat!("is no number; only the numbers of `", $name, "` can change: ", $list),
        }
    };
}

#[rustfmt::skip]
static ATTRIBUTES: [AttributeKind; 4] = [
    attribute! {
        "rate_limit": "rate" "burst" "warmup", "`rate`, `burst` and `warmup`";
        positional: ["rate", "burst"];
        others: ["refill", "lease"];
        flags: ["borrow", "pass_args", "shadow"];
    },
    attribute! {
        "count_limit": "limit" "period", "`limit` and `period`";
        positional: ["limit", "period"];
        others: ["lease"];
        flags: ["aligned", "pass_args", "shadow"];
    },
    attribute! {
        "funnel_limit": "capacity" "leak_rate" "drain", "`capacity`, `leak_rate` and `drain`";
        positional: ["capacity", "leak_rate"];
        others: [];
        flags: ["queue", "pass_args", "shadow"];
    },
    attribute! {
        "window_limit": "limit" "period" "precision", "`limit`, `period` and `precision`";
        positional: ["limit", "period"];
        others: [];
        flags: ["pass_args", "shadow"];
    },
];

impl Algorithm {
    /// Returns the attribute of the algorithm.
    #[doc(hidden)]
    #[must_use]
    pub fn attribute(self) -> &'static AttributeKind {
        match self {
            Algorithm::TokenBucket => &ATTRIBUTES[0],
            Algorithm::FixedWindow => &ATTRIBUTES[1],
            Algorithm::LeakyBucket => &ATTRIBUTES[2],
            Algorithm::SlidingWindow => &ATTRIBUTES[3],
        }
    }
}

impl AttributeKind {
    /// Returns all arguments.
    pub fn arguments(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.numbers, self.others, &SHARED, self.flags].into_iter().flatten().copied()
    }

    /// Returns the error for an argument that is not a number of the policy.
    pub(super) fn not_a_number(&self, argument: &str) -> InvalidPolicy {
        let find = |attribute: &AttributeKind| attribute.arguments().find(|known| *known == argument);
        if let Some(known) = find(self) {
            return InvalidPolicy::new(known, self.fixed);
        }
        if let Some(foreign) = ATTRIBUTES.iter().find_map(find) {
            return InvalidPolicy::new(foreign, self.foreign);
        }
        let meant = closest(argument, self.numbers.iter().copied());
        let meant = self.numbers.iter().zip(self.misspelled).find(|(name, _)| Some(**name) == meant);
        InvalidPolicy::new(self.name, meant.map_or(self.unknown, |(_, problem)| problem))
    }
}
