//! The keys that are refused most often.

#[cfg(test)]
mod properties;
mod space_saving;

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::space_saving::SpaceSaving;
use crate::decide::observation::{CallOutcome, Observation};

/// A bounded list of the keys that are refused most often, to find out who runs into a limit.
///
/// It counts by the Space-Saving algorithm (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent and Top-k Elements in
/// Data Streams", 2005). Of `n` refusals, every key with more than `n / capacity` is in the list, whatever the number of keys.
/// A count is never too low, and at most [`overcount`](LimitedKey::overcount) too high, which is at most `n / capacity`. So keys at
/// the end of a full list may be chance: give it a multiple of the keys that you want to see.
///
/// What counts is [`CallOutcome::Limited`], for each policy that refuses. Shadow policies do not refuse.
///
/// The list has hashes in place of keys. The hash of a key is the same in every process, and stands in braces in the key's text in
/// Redis, where it can be looked up. Whoever sees it can try keys, so it hides a long secret, but neither an address nor a number.
/// [`keep_keys`](Self::keep_keys) adds the keys themselves, of which at most 256 bytes are kept.
///
/// A refusal takes a lock for a few look-ups, however long the list is; an admitted call takes none. Clones share one list.
///
/// ```
/// use ratelimits::{Registry, TokenBucket};
/// use ratelimits::observe::MostLimited;
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let most_limited = MostLimited::new(100).keep_keys();
/// let registry = Registry::builder().observer(most_limited.observer()).in_memory();
/// let reports = registry.limiter("reports", TokenBucket::new("1/day".parse()?).burst(1))?;
/// for tenant in [7, 9, 9, 7, 9] {
///     let _ = reports.try_acquire(tenant).await;
/// }
/// let list = most_limited.list();
/// assert_eq!((&*list[0].policy, list[0].refusals), ("reports", 2));
/// assert_eq!(list[0].key, Some(vec!["9".to_owned()]));
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct MostLimited {
    refusals: Arc<Mutex<SpaceSaving<RefusedKey>>>,
    seed: RandomState,
    keeps_keys: bool,
}

/// A key in the list of a [`MostLimited`].
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitedKey {
    /// The name of the policy that refused.
    pub policy: Arc<str>,
    /// A hash of the parts of the key: 16 hexadecimal digits. Empty if all calls share one key.
    pub key_hash: String,
    /// The parts of the key, which may be personal data; `None` without [`MostLimited::keep_keys`]. Of a longer key the first 256
    /// bytes, with `…` at their end.
    pub key: Option<Vec<String>>,
    /// The number of refused calls, at most `overcount` too high.
    pub refusals: u64,
    /// How many of the refusals may have been those of other keys.
    pub overcount: u64,
    /// Whether more of the key was left out.
    pub(crate) is_cut: bool,
}

/// How many bytes of a key are kept. Callers make it as long as they like.
const LONGEST_KEY: usize = 256;

/// What is kept of a key that was refused.
#[derive(Clone)]
struct RefusedKey {
    policy: Arc<str>,
    hash: Box<str>,
    key: Option<KeptTexts>,
}

/// The parts of a key, as far as they are kept.
#[derive(Clone)]
struct KeptTexts {
    texts: Box<[String]>,
    is_cut: bool,
}

impl MostLimited {
    /// Creates an empty list of at most `capacity` keys, and at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        let refusals = Arc::new(Mutex::new(SpaceSaving::new(capacity)));
        MostLimited { refusals, seed: RandomState::new(), keeps_keys: false }
    }

    /// Keeps the parts of keys as text, which may be personal data. Observers of this list that exist already do not.
    #[must_use]
    pub fn keep_keys(self) -> Self {
        MostLimited { keeps_keys: true, ..self }
    }

    /// Returns a function that counts refusals, for [`RegistryBuilder::observer`](crate::RegistryBuilder::observer). Several
    /// registries may have one list.
    pub fn observer(&self) -> impl Fn(&Observation<'_>) + Send + Sync + use<> {
        let list = self.clone();
        move |seen| {
            if seen.outcome == CallOutcome::Limited {
                list.count(seen);
            }
        }
    }

    /// Returns the keys in descending order of their refusals, since the list was created or last cleared.
    #[must_use]
    pub fn list(&self) -> Vec<LimitedKey> {
        let refusals = self.lock();
        let keys = refusals.counters().iter().map(|counter| {
            let RefusedKey { policy, hash, key } = &counter.item;
            LimitedKey {
                policy: Arc::clone(policy),
                key_hash: String::from(&**hash),
                key: key.as_ref().map(|key| key.texts.to_vec()),
                is_cut: key.as_ref().is_none_or(|key| key.is_cut),
                refusals: counter.count,
                overcount: counter.overcount,
            }
        });
        keys.collect()
    }

    /// Removes all keys, so that the list shows what comes next: once an hour, say.
    pub fn clear(&self) {
        self.lock().clear();
    }

    pub(crate) fn count(&self, seen: &Observation<'_>) {
        let id = self.seed.hash_one((seen.policy, seen.parts()));
        let key = || RefusedKey {
            policy: seen.policy.into(),
            hash: seen.parts().tag().into(),
            key: self.keeps_keys.then(|| KeptTexts::of(&seen.key())),
        };
        // A long key is hashed before the lock is taken again.
        let new = (!self.lock().contains(id)).then(key);
        self.lock().add(id, || new.unwrap_or_else(key));
    }

    fn lock(&self) -> MutexGuard<'_, SpaceSaving<RefusedKey>> {
        self.refusals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeptTexts {
    fn of(key: &[Cow<'_, str>]) -> Self {
        let (mut texts, mut room) = (Vec::new(), LONGEST_KEY);
        for text in key {
            let Some(rest) = room.checked_sub(text.len()) else {
                let kept = (0..=room).rev().find_map(|end| text.get(..end)).unwrap_or_default();
                texts.push(format!("{kept}…"));
                return KeptTexts { texts: texts.into(), is_cut: true };
            };
            room = rest;
            texts.push(String::from(&**text));
        }
        KeptTexts { texts: texts.into(), is_cut: false }
    }
}

/// Without the keys.
impl fmt::Debug for MostLimited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MostLimited").field("len", &self.lock().counters().len()).finish_non_exhaustive()
    }
}

/// Without the key.
impl fmt::Debug for LimitedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LimitedKey { policy, key_hash, refusals, overcount, .. } = self;
        f.debug_struct("LimitedKey")
            .field("policy", policy)
            .field("key_hash", key_hash)
            .field("refusals", refusals)
            .field("overcount", overcount)
            .finish_non_exhaustive()
    }
}
