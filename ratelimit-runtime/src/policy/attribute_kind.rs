//! The attributes of algorithms, and errors about their arguments.

use std::sync::LazyLock;

use ratelimit_syntax::{AttributeKind, closest, listed};

use super::algorithm::Algorithm;
use crate::base::invalid_policy::InvalidPolicy;

impl Algorithm {
    /// Returns the attribute of the algorithm.
    #[doc(hidden)]
    #[must_use]
    pub fn attribute(self) -> AttributeKind {
        match self {
            Algorithm::TokenBucket => AttributeKind::Rate,
            Algorithm::FixedWindow => AttributeKind::Count,
            Algorithm::LeakyBucket => AttributeKind::Funnel,
            Algorithm::SlidingWindow => AttributeKind::Window,
            Algorithm::Semaphore => AttributeKind::Concurrency,
        }
    }
}

/// What may be wrong with the name of a number of an attribute. The texts are made once, because errors refer to them.
struct Problems {
    unknown: String,
    /// `unknown` with a suggestion, for each number.
    misspelled: Vec<String>,
    foreign: String,
    fixed: String,
}

static PROBLEMS: LazyLock<[Problems; AttributeKind::ALL.len()]> =
    LazyLock::new(|| AttributeKind::ALL.map(Problems::of));

impl Problems {
    fn of(attribute: AttributeKind) -> Problems {
        let (name, numbers) = (attribute.name(), attribute.numbers());
        let (last, others) = numbers.split_last().expect("every policy has numbers");
        let list = format!("{} and `{last}`", listed(others.iter().copied()));
        let misspelled =
            |meant| format!("has no such argument; did you mean `{meant}`? Its numbers are {list}");
        Problems {
            unknown: format!("has no such argument; its numbers are {list}"),
            misspelled: numbers.iter().map(misspelled).collect(),
            foreign: format!("is no argument of `{name}`; its numbers are {list}"),
            fixed: format!("is no number; only the numbers of `{name}` can change: {list}"),
        }
    }
}

/// Returns the error for an argument that is not a number of the attribute's policy.
pub(super) fn not_a_number(attribute: AttributeKind, argument: &str) -> InvalidPolicy {
    let problems = &PROBLEMS[attribute as usize];
    if let Some(known) = attribute.argument(argument) {
        return InvalidPolicy::new(known, &problems.fixed);
    }
    if let Some(foreign) = AttributeKind::ALL.into_iter().find_map(|other| other.argument(argument)) {
        return InvalidPolicy::new(foreign, &problems.foreign);
    }
    let numbers = attribute.numbers().iter().copied();
    let meant = closest(argument, numbers.clone());
    let meant = numbers.zip(&problems.misspelled).find(|(name, _)| Some(*name) == meant);
    InvalidPolicy::new(attribute.name(), meant.map_or(&problems.unknown, |(_, problem)| problem))
}
