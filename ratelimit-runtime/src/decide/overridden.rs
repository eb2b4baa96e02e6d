//! What operators have changed of a policy, found by name once for all calls, and for a key once for all calls of that.

mod words;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, TryLockError};

use self::words::{AllWords, Lookup};
pub(crate) use self::words::{ByHash, ByKey};
use crate::algorithm::{AlgorithmSpec, PlainSpec};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::number_map::NumberMap;
use crate::base::shared_numbers::SharedNumbers;
use crate::base::shared_table::SharedTable;
use crate::decide::overridden_key::{OverriddenKey, Written};
use crate::decide::overrides::{ActiveOverride, HashedKeys, KeyOverride, OfPolicy, Overrides};
use crate::key::{Fingerprint, KeyHead, PartsOfKey};
use crate::policy::Policy;

/// What the overrides of a registry say of a policy, as of the last call.
#[derive(Debug, Default)]
pub(crate) struct KnownOverride {
    /// The version of overrides that do not name the policy.
    without: AtomicU64,
    /// The version of those that change only some keys, which are looked up by their hashes.
    by_key_alone: AtomicU64,
    /// The version of those that do, and what they say of all calls.
    all: SharedNumbers<5>,
    /// The keys that have overrides, and what is in force for those that were called. Made once so many calls have looked as there are
    /// such keys, because a limiter may be made for a few calls.
    keys: OnceLock<Box<SharedTable>>,
    /// The same, and the rest. Holders of the write lock may write to the others.
    with: RwLock<Option<Known>>,
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
    lookup: Lookup,
    /// How many more calls look here for the override of their key before the table is made.
    before_table: AtomicUsize,
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
    Computed(Arc<ComputedKey>),
}

/// The override of a key, for calls with computed numbers.
#[derive(Debug)]
struct ComputedKey {
    key: Arc<KeyOverride>,
    all: Option<Arc<ActiveOverride>>,
    over_all: Option<ActiveOverride>,
    /// The same without that of all keys, which may not fit what a call computes.
    alone: Option<ActiveOverride>,
}

/// What an override makes of a call.
#[derive(Clone, Debug)]
pub(crate) struct Overridden {
    version: u64,
    pub(crate) is_off: bool,
    pub(crate) is_shadow: bool,
    pub(crate) numbers: Result<AlgorithmSpec, InvalidPolicy>,
    lookup: Lookup,
}

impl KnownOverride {
    /// Whether it is known that the overrides leave the policy as it is.
    #[inline]
    pub(crate) fn is_none(&self, overrides: &Overrides) -> bool {
        let version = overrides.version();
        version == 0 || self.without.load(Ordering::Relaxed) == version
    }

    /// Returns how a call finds out whether its key has an override, if it is known that calls of other keys are as they are written.
    #[inline]
    pub(crate) fn by_key_alone(&self, overrides: &Overrides) -> Option<ByHash> {
        let version = overrides.version();
        let is_known = self.by_key_alone.load(Ordering::Relaxed) == version;
        is_known.then_some(ByHash { version })
    }

    /// Returns what the overrides make of a call of the policy, whose numbers are literals, or computed for the call. `head` returns
    /// what the keys begin with that overrides are looked up by, and whether those of calls with these numbers do.
    pub(super) fn get<'h>(
        &self,
        overrides: &Overrides,
        written: Written<'_>,
        computed: Option<&Result<Policy, InvalidPolicy>>,
        head: impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
    ) -> Option<Overridden> {
        let version = overrides.version();
        if let Some([of, words @ ..]) = self.all.get()
            && of == version
        {
            let AllWords { is_off, is_shadow, changes_nothing, lookup, spec } = AllWords::of_words(words);
            let numbers = match (computed, spec) {
                (None, Some(spec)) => Some(Ok(spec.spec())),
                (Some(Ok(policy)), _) if changes_nothing => Some(policy.spec()),
                _ => None,
            };
            if let Some(numbers) = numbers {
                let lookup = if computed.is_some() { lookup.of_call(&numbers, &head) } else { lookup };
                return Some(Overridden { version, is_off, is_shadow, numbers, lookup });
            }
        }
        let found = |known: &Known| (known.version, known.all.clone(), known.literal.clone(), known.lookup);
        let (version, all, literal, lookup) =
            self.known(overrides, version, written, &head, computed, found)?;
        // Without the lock, because an override that does not fit is logged.
        let (all, numbers) = match (computed, literal) {
            (None, Some(numbers)) => (all, numbers),
            (None, None) => (all, Err(InvalidPolicy::new("policy", "has numbers that are no literals"))),
            (Some(Err(invalid)), _) => (all, Err(invalid.clone())),
            (Some(Ok(policy)), _) => match all.and_then(|all| Some((all.spec(None, *policy)?, all))) {
                Some((numbers, all)) => (Some(all), numbers),
                None if lookup == Lookup::No => return None,
                None => (None, policy.spec()),
            },
        };
        let (is_off, is_shadow) = all.map_or((false, false), |all| (all.is_off(), all.is_shadow()));
        let lookup = lookup.of_call(&numbers, &head);
        Some(Overridden { version, is_off, is_shadow, numbers, lookup })
    }

    /// Returns what the override of a key makes of a call, if that is at hand.
    #[inline(always)]
    pub(super) fn of_known_key(
        &self,
        by_key: &ByKey,
        looked_up: Fingerprint,
    ) -> Option<Option<OverriddenKey>> {
        match self.keys.get()?.find(by_key.version, looked_up.words())? {
            None => Some(None),
            Some(found) => OverriddenKey::found(&found, by_key, looked_up),
        }
    }

    /// Returns the numbers and the key that the override of a key makes of a call, if that is at hand and there is no more to it.
    /// `Some(None)` if those of the call are in force.
    #[inline(always)]
    pub(super) fn plain_of_known_key(
        &self,
        by_key: &ByKey,
        looked_up: Fingerprint,
    ) -> Option<Option<(PlainSpec, Fingerprint)>> {
        match self.keys.get()?.find(by_key.version, looked_up.words())? {
            None => Some(None),
            Some(found) => OverriddenKey::found_plain(&found, by_key, looked_up),
        }
    }

    /// Returns what the override of this key makes of a call, if there is one, and has it at hand from then on, if that is possible.
    /// `hash` returns the key of calls with these numbers.
    pub(super) fn of_key<'h>(
        &self,
        overrides: &Overrides,
        written: Written<'_>,
        by_key: &ByKey,
        (looked_up, parts): (Fingerprint, PartsOfKey<'_>),
        head: impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
        hash: impl Fn(&AlgorithmSpec, PartsOfKey<'_>) -> Fingerprint,
    ) -> Option<OverriddenKey> {
        let computed = by_key.policy.map(Ok);
        let find = |known: &Known| {
            let found = known.keys.iter().find_map(|keys| {
                let key = if by_key.needs_parts() { keys.head.of_parts(parts) } else { looked_up };
                Some(match known.called.get(&key) {
                    Some(known) => Ok(known.clone()),
                    None => Err((key, Arc::clone(keys.get(key)?), known.all.clone())),
                })
            });
            (found, known.counts_look())
        };
        let (found, makes_table) =
            self.known(overrides, by_key.version, written, &head, computed.as_ref(), find)?;
        if makes_table {
            self.make_table(by_key.version);
        }
        let found = found?;
        // Without the lock, as above.
        let (known, is_new) = match found {
            Ok(known) => (known, None),
            Err((key, found, all)) => {
                let over = |all| found.over(all).filter(|it| it.fits(written.is_shadow));
                let over_all = over(all.as_deref());
                let known = match (over_all, written.literal.filter(|_| computed.is_none())) {
                    (over_all, None) => {
                        let alone = over(None);
                        KnownKey::Computed(Arc::new(ComputedKey { key: found, all, over_all, alone }))
                    }
                    (Some(merged), Some((spec, policy))) => match merged.spec(Some(spec), policy) {
                        Some(Ok(spec)) => KnownKey::Literal(merged.of_key(spec, hash(&spec, found.parts()))),
                        _ => KnownKey::Nothing,
                    },
                    (None, Some(_)) => KnownKey::Nothing,
                };
                (known, Some(key))
            }
        };
        let of_key = match (&known, by_key.policy) {
            (KnownKey::Literal(of_key), _) => Some(*of_key),
            (KnownKey::Computed(computed), Some(policy)) => {
                let found = computed.get(policy);
                found.map(|(says, spec)| says.of_key(spec, hash(&spec, computed.key.parts())))
            }
            _ => None,
        };
        // Calls with other numbers each time wait for nobody to have them at hand.
        let with = match is_new {
            Some(_) => Some(self.with.write().unwrap_or_else(PoisonError::into_inner)),
            None => match self.with.try_write() {
                Ok(with) => Some(with),
                Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
                Err(TryLockError::WouldBlock) => None,
            },
        };
        if let Some(mut with) = with
            && let Some(with) = with.as_mut().filter(|with| with.version == by_key.version)
        {
            if let Some(keys) = self.keys.get()
                && let (Some(words), Some(given)) =
                    (OverriddenKey::words(of_key.as_ref(), looked_up), by_key.given())
            {
                keys.remember(with.version, looked_up.words(), given, words);
            }
            if let Some(key) = is_new {
                with.called.insert(key, known);
            }
        }
        of_key
    }

    /// Returns what a function finds in what overrides say of the policy, if they say anything: those of a version, if they are still
    /// known, and else the present ones.
    fn known<'h, T>(
        &self,
        overrides: &Overrides,
        version: u64,
        written: Written<'_>,
        head: &impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
        computed: Option<&Result<Policy, InvalidPolicy>>,
        found: impl Fn(&Known) -> T,
    ) -> Option<T> {
        if let Some(known) = &*self.with.read().unwrap_or_else(PoisonError::into_inner)
            && known.version == version
        {
            return Some(found(known));
        }
        let (version, of_policy) = overrides.of(version, written.prefix, &written.names);
        let is_present = version == overrides.version();
        let has_keys = !of_policy.keys.is_empty();
        let Some(known) = Known::new(version, of_policy, written, head, computed) else {
            if is_present {
                self.without.store(version, Ordering::Relaxed);
            }
            return None;
        };
        let said = found(&known);
        // If the numbers of this call are invalid, those of others tell how keys are looked up.
        if !is_present || has_keys && known.lookup == Lookup::No {
            return Some(said);
        }
        let mut with = self.with.write().unwrap_or_else(PoisonError::into_inner);
        if with.as_ref().is_some_and(|with| with.version == version) {
            return Some(said);
        }
        self.all.set(Some(known.words()));
        if known.all.is_none() && known.lookup == Lookup::ByHash {
            self.by_key_alone.store(version, Ordering::Relaxed);
        }
        *with = Some(known);
        Some(said)
    }

    /// Makes the table of the keys that have overrides, if those of this version are still known.
    #[cold]
    fn make_table(&self, version: u64) {
        let with = self.with.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = with.as_ref().filter(|with| with.version == version) {
            let hashes: Vec<_> = known.hashes().collect();
            self.keys.get_or_init(Box::default).replace(version, &hashes);
        }
    }
}

impl Known {
    /// Returns what overrides say of a policy, or `None` if they do not change it.
    fn new<'h>(
        version: u64,
        OfPolicy { all, keys }: OfPolicy,
        written: Written<'_>,
        head: &impl Fn(&AlgorithmSpec) -> (&'h KeyHead, bool),
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
            (None, Some(Ok(policy))) => {
                let numbers = all.as_ref().and_then(|all| all.spec(None, *policy));
                numbers.unwrap_or_else(|| policy.spec()).ok()
            }
            _ => None,
        };
        let (mut lookup, mut hashed, mut have_head) = (Lookup::No, Vec::new(), false);
        if let (Some(spec), false) = (spec, keys.is_empty()) {
            let (head, is_of_calls) = head(&spec);
            hashed = keys.iter().map(|keys| keys.hashed(head)).collect();
            have_head = hashed.iter().all(|it| it.head.without_parts() == head.without_parts());
            // Those with computed numbers each find out whether they have that head.
            let calls_have_head = is_of_calls || literal.is_none();
            lookup = if have_head && calls_have_head { Lookup::ByHash } else { Lookup::ByParts };
        }
        let count = hashed.iter().map(|keys| keys.hashes().count()).sum();
        Some(Known {
            version,
            all,
            literal,
            keys: hashed,
            lookup,
            before_table: AtomicUsize::new(if have_head { count } else { usize::MAX }),
            called: NumberMap::default(),
        })
    }

    /// Counts a call that looks for the override of its key. Returns whether the table is to be made.
    fn counts_look(&self) -> bool {
        self.before_table.fetch_sub(1, Ordering::Relaxed) == 1
    }

    /// Returns the hashes of the keys that have overrides.
    fn hashes(&self) -> impl Iterator<Item = [u64; 2]> {
        self.keys.iter().flat_map(|keys| keys.hashes()).map(Fingerprint::words)
    }

    /// Returns what it says of all calls in numbers that are read without a lock.
    fn words(&self) -> [u64; 5] {
        let all = self.all.as_ref();
        let words = AllWords {
            is_off: all.is_some_and(|all| all.is_off()),
            is_shadow: all.is_some_and(|all| all.is_shadow()),
            changes_nothing: all.is_none(),
            lookup: self.lookup,
            spec: self.literal.as_ref().and_then(|spec| PlainSpec::of(spec.as_ref().ok()?)),
        };
        let [switches, kind, first, second] = words.words();
        [self.version, switches, kind, first, second]
    }
}

impl ComputedKey {
    /// Returns what is in force for a call that has computed this policy, and its numbers. `None` if the override does not fit it.
    fn get(&self, policy: Policy) -> Option<(&ActiveOverride, AlgorithmSpec)> {
        let all_fits = self.all.as_ref().is_none_or(|all| all.spec(None, policy).is_some());
        let says = if all_fits { &self.over_all } else { &self.alone }.as_ref()?;
        Some((says, says.spec(None, policy)?.ok()?))
    }
}

impl Overridden {
    /// Whether the override of its key may say otherwise.
    pub(crate) fn has_keys(&self) -> bool {
        self.lookup != Lookup::No && self.numbers.is_ok()
    }

    /// Returns how a call looks for the override of its key, whose policy was computed if it is given.
    pub(crate) fn by_key(&self, policy: Option<&Result<Policy, InvalidPolicy>>) -> Option<ByKey> {
        if !self.has_keys() {
            return None;
        }
        let policy = policy.and_then(|policy| policy.as_ref().ok()).copied();
        let Overridden { version, is_off, lookup, .. } = *self;
        Some(ByKey { version, policy, is_off, lookup })
    }
}

impl ActiveOverride {
    fn of_key(&self, spec: AlgorithmSpec, key: Fingerprint) -> OverriddenKey {
        let blocked = self.is_blocked().then(|| self.until());
        OverriddenKey { is_off: self.is_off(), is_shadow: self.is_shadow(), blocked, spec, key }
    }
}

#[cfg(test)]
mod tests;
