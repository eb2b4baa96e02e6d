//! Who claims which name.

use std::collections::HashMap;
use std::mem;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use super::attribute::Attribute;
use crate::algorithm::AlgorithmSpec;
use crate::policy::Policy;

/// The attributes that have claimed each prefix and name.
#[derive(Debug, Default)]
pub(crate) struct Claims(HashMap<(&'static str, Box<str>), Vec<Claim>>);

/// The claim of an attribute.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) attribute: &'static Attribute,
    /// The function, if it is the tag of the keys.
    pub(crate) function: Option<Box<str>>,
}

/// Returns what the calls of this process have claimed.
pub(super) fn claims() -> MutexGuard<'static, Claims> {
    static CLAIMS: LazyLock<Mutex<Claims>> = LazyLock::new(Mutex::default);
    CLAIMS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claims {
    /// Registers a claim, unless it clashes with an earlier one. Returns the clash.
    pub(crate) fn register(&mut self, claim: Claim, name: &str) -> Option<String> {
        let earlier = self.0.entry((claim.attribute.options.prefix, name.into())).or_default();
        let clash = earlier.iter().find_map(|earlier| claim.clash(name, earlier));
        if clash.is_none() && !earlier.iter().any(|earlier| std::ptr::eq(earlier.attribute, claim.attribute))
        {
            earlier.push(claim);
        }
        clash
    }
}

impl Claim {
    fn clash(&self, name: &str, earlier: &Claim) -> Option<String> {
        let (this, that) = (&self.attribute.options, &earlier.attribute.options);
        let sites = format!("({}, {})", earlier.attribute, self.attribute);
        let tags_differ = (this.tag, &self.function) != (that.tag, &earlier.function);
        // One site has several types if its function is generic or belongs to a trait.
        if std::ptr::eq(self.attribute, earlier.attribute) && (this.name.is_none() || !tags_differ) {
            return None;
        }
        if this.name.is_none() || that.name.is_none() {
            return Some(format!("`{name}` is the name of two policies {sites}; set `name = …` on one"));
        }
        let numbers_differ = matches!((self.attribute.literal(), earlier.attribute.literal()), (Some(a), Some(b)) if a.spec() != b.spec());
        // A bucket with computed numbers has one state whatever they are, and one with literal numbers has its own.
        let only_literal = self.attribute.literal().xor(earlier.attribute.literal());
        let difference = if this.variant != that.variant {
            "with different algorithms"
        } else if matches!(only_literal, Some(Policy::TokenBucket(_) | Policy::LeakyBucket(_))) {
            "one with literal and one with computed numbers"
        } else if self.has_other_states(earlier) {
            "of which one settles, pauses or binds its calls, and the other does not"
        } else if numbers_differ || self.has_other_keys(earlier) {
            "with different numbers"
        } else if tags_differ {
            "whose keys a Cluster groups differently"
        } else {
            return None;
        };
        Some(format!("`{name}` is the name of two policies {difference} {sites}; rename one"))
    }

    /// Whether buckets of both keep different states, as those do that are settled or paused.
    fn has_other_states(&self, earlier: &Claim) -> bool {
        let state = |claim: &Claim| {
            let spec = claim.attribute.literal()?.spec().ok()?;
            let is_bucket = matches!(
                spec,
                AlgorithmSpec::Gcra(_) | AlgorithmSpec::AdjustableGcra(_) | AlgorithmSpec::SettledGcra(_)
            );
            is_bucket.then_some(mem::discriminant(&spec))
        };
        matches!((state(self), state(earlier)), (Some(this), Some(that)) if this != that)
    }

    /// Whether windows of both have different literal numbers that shape their keys.
    fn has_other_keys(&self, earlier: &Claim) -> bool {
        let (this, that) = (self.attribute, earlier.attribute);
        let shape = |attribute: &Attribute| {
            let is_literal =
                !["period", "precision"].iter().any(|number| attribute.computed.contains(number));
            let policy = (attribute.policy)();
            let is_window = matches!(policy, Policy::FixedWindow(_) | Policy::SlidingWindow(_));
            policy.spec().ok().filter(|_| is_literal && is_window).map(|spec| spec.to_string())
        };
        matches!((shape(this), shape(that)), (Some(this), Some(that)) if this != that)
    }
}
