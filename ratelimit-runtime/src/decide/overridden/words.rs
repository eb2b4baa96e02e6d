//! What overrides say of all calls, and make of those of a key, and the words of both that are read without a lock.

use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::shared_table::{Found, Given, Remembered};
use crate::decide::overridden_key::OverriddenKey;
use crate::key::{Fingerprint, KeyHead};
use crate::policy::Policy;

/// How calls look for an override of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup {
    /// There are none.
    No,
    /// By its hash.
    ByHash,
    /// By its parts, as its hash begins otherwise.
    ByParts,
}

/// How a call finds out whether its key has an override of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByKey {
    /// The version of the overrides by which the call has begun.
    pub(super) version: u64,
    /// The policy, if its numbers were computed for the call.
    pub(super) policy: Option<Policy>,
    /// Whether the policy is off for other keys.
    pub(crate) is_off: bool,
    pub(super) lookup: Lookup,
}

/// The same for a call of a policy of which only keys have overrides: by its hash, in those of this version.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByHash {
    pub(super) version: u64,
}

/// What they say of all calls of a policy.
pub(super) struct AllWords {
    pub(super) is_off: bool,
    pub(super) is_shadow: bool,
    /// Whether there is no override of all keys.
    pub(super) changes_nothing: bool,
    pub(super) lookup: Lookup,
    /// The numbers of all calls, if these are plain literals.
    pub(super) spec: Option<PlainSpec>,
}

const OFF: u64 = 1;
const SHADOW: u64 = 1 << 1;
const CHANGES_NOTHING: u64 = 1 << 2;
const BY_HASH: u64 = 1 << 3;
const BY_PARTS: u64 = 1 << 4;
/// There is no override, as that of the key does not fit the policy.
const NOTHING: u64 = 1 << 5;
/// The state has the key by which the override is looked up.
const SAME_KEY: u64 = 1 << 6;

/// The kind of numbers that are not plain.
const NOT_PLAIN: [u64; 3] = [u64::MAX, 0, 0];

/// Where the kind of plain numbers is in the word of switches.
const KIND: u32 = 32;

impl AllWords {
    pub(super) fn words(&self) -> [u64; 4] {
        let lookup = match self.lookup {
            Lookup::No => 0,
            Lookup::ByHash => BY_HASH,
            Lookup::ByParts => BY_PARTS,
        };
        let switches =
            [(self.is_off, OFF), (self.is_shadow, SHADOW), (self.changes_nothing, CHANGES_NOTHING)];
        let [kind, first, second] = self.spec.map_or(NOT_PLAIN, PlainSpec::words);
        [lookup | bits(switches), kind, first, second]
    }

    #[inline]
    pub(super) fn of_words([switches, kind, first, second]: [u64; 4]) -> Self {
        AllWords {
            is_off: switches & OFF != 0,
            is_shadow: switches & SHADOW != 0,
            changes_nothing: switches & CHANGES_NOTHING != 0,
            lookup: match switches & (BY_HASH | BY_PARTS) {
                0 => Lookup::No,
                BY_HASH => Lookup::ByHash,
                _ => Lookup::ByParts,
            },
            spec: PlainSpec::of_words([kind, first, second]),
        }
    }
}

impl OverriddenKey {
    /// Returns words that tell what is in force for a key, if they can.
    pub(super) fn words(of_key: Option<&Self>, looked_up: Fingerprint) -> Option<Remembered> {
        let Some(of_key) = of_key else { return Some([NOTHING, 0, 0, 0, 0]) };
        let [kind, first, second] = PlainSpec::of(&of_key.spec).filter(|_| of_key.blocked.is_none())?.words();
        let is_same = of_key.key == looked_up;
        let switches = bits([(of_key.is_off, OFF), (of_key.is_shadow, SHADOW), (is_same, SAME_KEY)]);
        let Fingerprint(one, other) = of_key.key;
        Some([switches | kind << KIND, first, second, one, other])
    }

    /// Returns what is in force for a key that was looked up, if that is remembered for the numbers of the call.
    pub(super) fn found(found: &Found<'_>, by_key: &ByKey, looked_up: Fingerprint) -> Option<Option<Self>> {
        let [switches, first, second, one, other] = found.numbers();
        if !by_key.is_given(found) || !found.is_still_known() {
            return None;
        }
        if switches & NOTHING != 0 {
            return Some(None);
        }
        Some(Some(OverriddenKey {
            is_off: switches & OFF != 0,
            is_shadow: switches & SHADOW != 0,
            blocked: None,
            spec: PlainSpec::of_words([switches >> KIND, first, second])?.spec(),
            key: if switches & SAME_KEY != 0 { looked_up } else { Fingerprint(one, other) },
        }))
    }

    /// Returns only its numbers and its key, if there is no more to it.
    #[inline(always)]
    pub(super) fn found_plain(
        found: &Found<'_>,
        by_key: &ByKey,
        looked_up: Fingerprint,
    ) -> Option<Option<(PlainSpec, Fingerprint)>> {
        // Before the rest is read, which would have to be kept meanwhile.
        if !by_key.is_given(found) {
            return None;
        }
        let switches = found.number::<0>();
        if switches & (NOTHING | OFF | SHADOW) != 0 {
            return (switches & NOTHING != 0 && found.is_still_known()).then_some(None);
        }
        let spec = [switches >> KIND, found.number::<1>(), found.number::<2>()];
        // Mostly known without the words, so that the processor need not wait for them to look for its state.
        let key = if switches & SAME_KEY != 0 {
            looked_up
        } else {
            Fingerprint(found.number::<3>(), found.number::<4>())
        };
        if !found.is_still_known() {
            return None;
        }
        Some(Some((PlainSpec::of_words(spec)?, key)))
    }
}

impl ByHash {
    /// Returns the same for literal numbers.
    pub(crate) fn by_key(self) -> ByKey {
        ByKey { version: self.version, policy: None, is_off: false, lookup: Lookup::ByHash }
    }

    /// Returns the same for numbers that were computed as this policy.
    #[inline(always)]
    pub(crate) fn of_policy(self, policy: &Policy) -> ByKey {
        ByKey { policy: Some(*policy), ..self.by_key() }
    }
}

impl ByKey {
    /// Whether the parts of the key are needed to look for its override.
    pub(crate) fn needs_parts(&self) -> bool {
        self.lookup == Lookup::ByParts
    }

    /// Whether what was found is that of the numbers of the call, if it [is still known](Found::is_still_known).
    #[inline(always)]
    fn is_given(&self, found: &Found<'_>) -> bool {
        match &self.policy {
            Some(policy) => found.given().is_some_and(|given| policy.has_words(|i| given.word(i))),
            None => true,
        }
    }

    /// Returns what the numbers of the key follow from, if they do and words can tell it.
    pub(super) fn given(&self) -> Option<Option<Given>> {
        match &self.policy {
            Some(policy) => policy.words().map(Some),
            None => Some(None),
        }
    }
}

impl Lookup {
    /// Returns how calls with these numbers look for it, given how others do.
    pub(super) fn of_call<'h>(
        self,
        numbers: &Result<AlgorithmSpec, InvalidPolicy>,
        head: impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
    ) -> Self {
        match numbers {
            Ok(spec) if self == Lookup::ByHash && !head(spec).1 => Lookup::ByParts,
            _ => self,
        }
    }
}

#[inline]
fn bits<const N: usize>(switches: [(bool, u64); N]) -> u64 {
    switches.into_iter().filter(|(is_set, _)| *is_set).map(|(_, bit)| bit).sum()
}
