//! What operators have changed of a policy, found by name once for all calls, and for a key once for all calls of that.

mod filter;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use self::filter::KeyFilter;

use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::number_map::NumberMap;
use crate::base::shared_numbers::SharedNumbers;
use crate::decide::overrides::{ActiveOverride, HashedKeys, KeyOverride, OfPolicy, Overrides};
use crate::key::{Fingerprint, KeyHead, PartsOfKey};
use crate::policy::Policy;

/// What the overrides of a registry say of a policy, as of the last call.
#[derive(Debug, Default)]
pub(crate) struct KnownOverride {
    /// The version of overrides that do not name the policy.
    without: AtomicU64,
    /// The version of those that do, what they switch, and the numbers of all calls, if these are plain.
    plain: SharedNumbers<5>,
    /// The keys that have overrides, as long as the numbers are plain. Made once there are any.
    filter: OnceLock<Box<KeyFilter>>,
    with: RwLock<Option<Known>>,
}

/// A policy as it is written.
#[derive(Clone, Copy)]
pub(crate) struct Written<'a> {
    pub(crate) prefix: &'a str,
    /// The names by which overrides find it, the most specific first.
    pub(crate) names: [&'a str; 2],
    pub(crate) is_shadow: bool,
    /// Its numbers, if they are literals.
    pub(crate) literal: Option<(&'a AlgorithmSpec, Policy)>,
}

/// What overrides of this version say of the policy.
#[derive(Debug)]
struct Known {
    version: u64,
    /// That of all keys.
    all: Option<Arc<ActiveOverride>>,
    /// The numbers of all calls, if these are literals.
    literal: Option<Result<AlgorithmSpec, InvalidPolicy>>,
    keys: Vec<Arc<HashedKeys>>,
    by: Lookup,
    /// What is in force for the keys that were called.
    called: NumberMap<Fingerprint, KnownKey>,
}

/// What is in force for a key, as overrides of it and of all keys say together.
#[derive(Clone, Debug)]
enum KnownKey {
    /// What does not fit the policy.
    Nothing,
    /// The same for all calls.
    Literal(OverriddenKey),
    Computed(Arc<ActiveOverride>, Arc<KeyOverride>),
}

/// How calls look for an override of their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// There are none.
    No,
    /// By its hash.
    ByHash,
    /// By its parts, as its hash begins otherwise.
    ByParts,
}

/// What an override makes of a call.
#[derive(Clone, Debug)]
pub(crate) struct Overridden {
    pub(crate) is_off: bool,
    pub(crate) is_shadow: bool,
    pub(crate) numbers: Result<AlgorithmSpec, InvalidPolicy>,
    pub(crate) keys: Lookup,
}

/// The numbers of a call that its key may still override.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByKey {
    pub(crate) spec: AlgorithmSpec,
    /// The policy, if its numbers were computed for the call.
    pub(crate) policy: Option<Policy>,
    /// Whether the policy is off for other keys.
    pub(crate) is_off: bool,
    /// Whether a call that is turned off still counts as one that costs nothing.
    pub(crate) keeps_free: bool,
    pub(crate) lookup: Lookup,
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

impl KnownOverride {
    /// Whether it is known that the overrides leave the policy as it is.
    #[inline]
    pub(crate) fn is_none(&self, overrides: &Overrides) -> bool {
        let version = overrides.version();
        version == 0 || self.without.load(Ordering::Relaxed) == version
    }

    /// Returns what the overrides make of a call of the policy, whose numbers are literals, or computed for the call. `head` returns
    /// what the keys begin with that overrides are looked up by, and whether those of calls with these numbers do.
    pub(super) fn get(
        &self,
        overrides: &Overrides,
        written: Written<'_>,
        computed: Option<&Result<Policy, InvalidPolicy>>,
        head: impl Fn(&AlgorithmSpec) -> (KeyHead, bool),
    ) -> Option<Overridden> {
        let version = overrides.version();
        if computed.is_none()
            && let Some([of, switches, kind, first, second]) = self.plain.get()
            && of == version
            && let Some(spec) = PlainSpec::of_words([kind, first, second])
        {
            let (is_shadow, keys) = Lookup::of_word(switches);
            return Some(Overridden { is_off: false, is_shadow, numbers: Ok(spec.spec()), keys });
        }
        let found = |known: &Known| (known.all.clone(), known.literal.clone(), known.by);
        let (all, literal, by) = self.known(overrides, written, &head, computed, found)?;
        // Without the lock, because an override that does not fit is logged.
        let (all, numbers) = match (computed, literal) {
            (None, Some(numbers)) => (all, numbers),
            (None, None) => (all, Err(InvalidPolicy::new("policy", "has numbers that are no literals"))),
            (Some(Err(invalid)), _) => (all, Err(invalid.clone())),
            (Some(Ok(policy)), _) => match all.and_then(|all| Some((all.spec(None, *policy)?, all))) {
                Some((numbers, all)) => (Some(all), numbers),
                None if by == Lookup::No => return None,
                None => (None, policy.spec()),
            },
        };
        let (is_off, is_shadow) = all.map_or((false, false), |all| (all.is_off(), all.is_shadow()));
        let keys = match &numbers {
            Ok(spec) if by == Lookup::ByHash && !head(spec).1 => Lookup::ByParts,
            _ => by,
        };
        Some(Overridden { is_off, is_shadow, numbers, keys })
    }

    /// Returns what the override of this key makes of a call, if that is known and the same for all calls. Says without a lock of most
    /// keys that they have none.
    #[inline]
    pub(super) fn of_known_key(
        &self,
        overrides: &Overrides,
        by_key: &ByKey,
        key: Fingerprint,
    ) -> Option<Option<OverriddenKey>> {
        let filter = self.filter.get().filter(|_| by_key.lookup == Lookup::ByHash)?;
        let version = overrides.version();
        let ([of, ..], may_have) = self.plain.get_with(|| filter.may_have(key))?;
        if of == version && !may_have {
            return Some(None);
        }
        let known = self.with.read().unwrap_or_else(PoisonError::into_inner);
        match known.as_ref().filter(|known| known.version == version)?.called.get(&key)? {
            KnownKey::Literal(of_key) => Some(Some(*of_key)),
            _ => None,
        }
    }

    /// Returns what the override of this key makes of a call, if there is one. `hash` returns the key of calls with these numbers.
    pub(super) fn of_key(
        &self,
        overrides: &Overrides,
        written: Written<'_>,
        by_key: &ByKey,
        (key, parts): (Fingerprint, PartsOfKey<'_>),
        head: impl Fn(&AlgorithmSpec) -> (KeyHead, bool),
        hash: impl Fn(&AlgorithmSpec, PartsOfKey<'_>) -> Fingerprint,
    ) -> Option<OverriddenKey> {
        let computed = by_key.policy.map(Ok);
        let find = |known: &Known| {
            known.keys.iter().find_map(|keys| {
                let key = if by_key.lookup == Lookup::ByHash { key } else { keys.head.of_parts(parts) };
                Some(match known.called.get(&key) {
                    Some(known) => Ok(known.clone()),
                    None => Err((key, Arc::clone(keys.get(key)?), known.all.clone())),
                })
            })
        };
        // Without the lock, as above.
        let known = match self.known(overrides, written, &head, computed.as_ref(), find)?? {
            Ok(known) => known,
            Err((looked_up, found, all)) => {
                let merged = found.over(all.as_deref()).filter(|it| it.fits(written.is_shadow));
                let known = match (merged, written.literal.filter(|_| computed.is_none())) {
                    (None, _) => KnownKey::Nothing,
                    (Some(merged), None) => KnownKey::Computed(Arc::new(merged), found),
                    (Some(merged), Some((spec, policy))) => match merged.spec(Some(spec), policy) {
                        Some(Ok(spec)) => KnownKey::Literal(merged.of_key(spec, hash(&spec, found.parts()))),
                        _ => KnownKey::Nothing,
                    },
                };
                let mut with = self.with.write().unwrap_or_else(PoisonError::into_inner);
                if let Some(with) = with.as_mut().filter(|with| with.version == overrides.version()) {
                    with.called.insert(looked_up, known.clone());
                }
                known
            }
        };
        match (known, by_key.policy) {
            (KnownKey::Literal(of_key), _) => Some(of_key),
            (KnownKey::Computed(merged, found), Some(policy)) => {
                let spec = merged.spec(None, policy)?.ok()?;
                Some(merged.of_key(spec, hash(&spec, found.parts())))
            }
            _ => None,
        }
    }

    /// Returns what a function finds in what these overrides say of the policy, if they say anything.
    fn known<T>(
        &self,
        overrides: &Overrides,
        written: Written<'_>,
        head: &impl Fn(&AlgorithmSpec) -> (KeyHead, bool),
        computed: Option<&Result<Policy, InvalidPolicy>>,
        found: impl Fn(&Known) -> T,
    ) -> Option<T> {
        let version = overrides.version();
        if let Some(known) = &*self.with.read().unwrap_or_else(PoisonError::into_inner)
            && known.version == version
        {
            return Some(found(known));
        }
        let (version, of_policy) = overrides.of(written.prefix, &written.names);
        let has_keys = !of_policy.keys.is_empty();
        let Some(known) = Known::new(version, of_policy, written, head, computed) else {
            self.without.store(version, Ordering::Relaxed);
            return None;
        };
        let said = found(&known);
        if has_keys && known.by == Lookup::No {
            // The numbers of this call are invalid, and those of others tell how keys are looked up.
            return Some(said);
        }
        let mut with = self.with.write().unwrap_or_else(PoisonError::into_inner);
        self.plain.set(None);
        if has_keys {
            let hashes = known.keys.iter().flat_map(|keys| keys.hashes());
            self.filter.get_or_init(KeyFilter::new).fill(hashes);
        }
        self.plain.set(known.plain());
        *with = Some(known);
        Some(said)
    }
}

impl Known {
    /// Returns what overrides say of a policy, or `None` if they do not change it.
    fn new(
        version: u64,
        OfPolicy { all, keys }: OfPolicy,
        written: Written<'_>,
        head: &impl Fn(&AlgorithmSpec) -> (KeyHead, bool),
        computed: Option<&Result<Policy, InvalidPolicy>>,
    ) -> Option<Self> {
        let all = all.filter(|all| all.fits(written.is_shadow));
        let (all, literal) = match written.literal {
            None => (all, None),
            Some((spec, policy)) => match all.and_then(|all| Some((all.spec(Some(spec), policy)?, all))) {
                Some((numbers, all)) => (Some(all), Some(numbers)),
                None => (None, Some(Ok(*spec))),
            },
        };
        if all.is_none() && keys.is_empty() {
            return None;
        }
        let spec = match (&literal, computed) {
            (Some(Ok(spec)), _) => Some(*spec),
            (None, Some(Ok(policy))) => policy.spec().ok(),
            _ => None,
        };
        let (mut by, mut hashed) = (Lookup::No, Vec::new());
        if let (Some(spec), false) = (spec, keys.is_empty()) {
            let (head, is_of_calls) = head(&spec);
            hashed = keys.iter().map(|keys| keys.hashed(&head)).collect();
            let is_by_hash =
                is_of_calls && hashed.iter().all(|it| it.head.without_parts() == head.without_parts());
            by = if is_by_hash { Lookup::ByHash } else { Lookup::ByParts };
        }
        Some(Known { version, all, literal, keys: hashed, by, called: NumberMap::default() })
    }

    /// Returns what it says in numbers that are read without a lock, if that is possible.
    fn plain(&self) -> Option<[u64; 5]> {
        let Some(Ok(spec)) = &self.literal else { return None };
        let (is_off, is_shadow) =
            self.all.as_ref().map_or((false, false), |all| (all.is_off(), all.is_shadow()));
        if is_off {
            return None;
        }
        let [kind, first, second] = PlainSpec::of(spec)?.words();
        Some([self.version, self.by.word(is_shadow), kind, first, second])
    }
}

impl Overridden {
    /// Whether the override of its key may say otherwise.
    pub(crate) fn has_keys(&self) -> bool {
        self.keys != Lookup::No && self.numbers.is_ok()
    }

    /// Returns the numbers of a call whose key may override them, whose policy was computed if it is given. `keeps_free` keeps a call
    /// that is turned off as one that costs nothing.
    pub(crate) fn by_key(
        &self,
        policy: Option<&Result<Policy, InvalidPolicy>>,
        keeps_free: bool,
    ) -> Option<ByKey> {
        let (Ok(spec), true) = (&self.numbers, self.keys != Lookup::No) else { return None };
        let policy = policy.and_then(|policy| policy.as_ref().ok()).copied();
        Some(ByKey { spec: *spec, policy, is_off: self.is_off, keeps_free, lookup: self.keys })
    }
}

impl ByKey {
    /// Whether the parts of the key are needed to look for its override.
    pub(crate) fn needs_parts(&self) -> bool {
        self.lookup == Lookup::ByParts
    }
}

impl Lookup {
    /// Returns a word that tells it, and whether the policy is in shadow.
    fn word(self, is_shadow: bool) -> u64 {
        let by = match self {
            Lookup::No => 0,
            Lookup::ByHash => 2,
            Lookup::ByParts => 4,
        };
        by | u64::from(is_shadow)
    }

    fn of_word(word: u64) -> (bool, Self) {
        let by = match word & !1 {
            0 => Lookup::No,
            2 => Lookup::ByHash,
            _ => Lookup::ByParts,
        };
        (word & 1 == 1, by)
    }
}

impl ActiveOverride {
    fn of_key(&self, spec: AlgorithmSpec, key: Fingerprint) -> OverriddenKey {
        let blocked = self.is_blocked().then(|| self.until());
        OverriddenKey { is_off: self.is_off(), is_shadow: self.is_shadow(), blocked, spec, key }
    }
}
