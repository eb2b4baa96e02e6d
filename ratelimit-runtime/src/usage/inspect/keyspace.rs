//! The keys of all policies in a Redis.

use std::collections::HashSet;
use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use futures_util::{StreamExt, TryStreamExt, stream};

use super::holders::{Holder, holders};
use super::reading::{KeyState, Reading};
use crate::algorithm::{AlgorithmSpec, Verdict};
use crate::decide::pausing;
use crate::key::{Key, NamespaceText};
use crate::store::error::StoreError;
use crate::store::tls::{ClientCertificate, Tls};
use crate::store::{Charge, Correction, Master, Outcome, RedisStore};

/// The number of keys that a server looks at for each `SCAN`, so that no other command waits long.
const SCAN_COUNT: usize = 100;

/// How many deletions are at a server at a time.
const DELETIONS: usize = 16;

/// The longest pause, which is also that of registries unless they say otherwise.
pub const MAX_PAUSE: Duration = pausing::MAX_PAUSE;

/// The keys of all policies in a Redis.
#[derive(Debug)]
pub struct Keyspace {
    store: RedisStore,
}

/// Where a Redis is, and what it takes to connect to it. Certificates are PEM.
#[derive(Clone, Default)]
pub struct Login {
    /// As for [`Registry::connect`](crate::Registry::connect).
    pub url: String,
    /// The authorities that are trusted for `rediss://`, in place of those of the system.
    pub authorities: Option<Vec<u8>>,
    /// The certificate to present to servers, and its key.
    pub client: Option<(Vec<u8>, Vec<u8>)>,
}

impl Keyspace {
    /// Uses a Redis, which is connected to by the first command. Each command to it has this deadline.
    ///
    /// # Errors
    ///
    /// If the URL or a certificate is invalid.
    pub fn new(login: Login, deadline: Duration) -> Result<Self, StoreError> {
        let Login { url, authorities, client } = login;
        let client = client.map(|(certificates, key)| ClientCertificate {
            certificates: certificates.into(),
            key: key.into(),
        });
        let tls = Tls { authorities: authorities.map(Into::into), client };
        let store = RedisStore::shared(&url, (deadline, RedisStore::HOLD_TTL), &tls, None)?;
        Ok(Keyspace { store })
    }

    /// Checks that Redis answers.
    ///
    /// # Errors
    ///
    /// If no server answers, or authentication fails.
    pub async fn ping(&self) -> Result<(), StoreError> {
        self.store.ping().await.map(drop)
    }

    /// Returns the address of the server or servers.
    #[must_use]
    pub fn server(&self) -> String {
        self.store.server()
    }

    /// Goes through all keys that match a pattern.
    ///
    /// # Errors
    ///
    /// If the servers of a Cluster are unknown.
    pub async fn scan(&self, pattern: String) -> Result<Scan<'_>, StoreError> {
        let masters = self.store.masters().await?;
        Ok(Scan { store: &self.store, pattern, masters, done: 0, cursor: 0, seen: Seen::default() })
    }

    /// Reads the states under these keys, and changes none. Calls `each` with the index of a key and its state, in any order;
    /// `None` for a value that is no such state.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn read(
        &self,
        keys: &[(String, Reading)],
        mut each: impl FnMut(usize, Option<KeyState>),
    ) -> Result<(), StoreError> {
        let (mut paused, mut states) = (Vec::new(), Vec::new());
        let charges: Vec<Charge> = keys.iter().map(|(key, reading)| look(key, reading.spec())).collect();
        let read = |index: usize, outcome: Result<Box<Outcome>, StoreError>| {
            let state = readable(outcome)?.map(|outcome| {
                let pause = outcome.pause(0).unwrap_or_default();
                let now = outcome.now;
                keys[index].1.state(&outcome.verdicts[0], (pause.left(now), pause.step(now)))
            });
            match state {
                Some(state) if state.paused.is_some() => {
                    paused.push(look(&keys[index].0, keys[index].1.unbounded()));
                    states.push((index, state));
                }
                state => each(index, state),
            }
            Ok(())
        };
        self.store.read(&charges, read).await?;
        // A paused key has nothing left, whatever it has used.
        let read = |at: usize, outcome| {
            let (index, state) = states[at];
            let used = readable(outcome)?.map(|outcome| outcome.verdicts[0]);
            let used = used.map(|Verdict { limit, remaining, .. }| limit.saturating_sub(remaining));
            each(index, used.map(|used| KeyState { used: state.used.and(Some(used)), ..state }));
            Ok(())
        };
        self.store.read(&paused, read).await
    }

    /// Returns which processes hold permits of a concurrency limit, those with the most first; `None` if the value under the key is no
    /// such state. Without a value there are none.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn holders(&self, key: &str) -> Result<Option<Vec<Holder>>, StoreError> {
        match self.store.hash(&Key::raw(key)).await {
            Ok((now, fields)) => Ok(holders(&fields, now)),
            Err(error) if error.is_permanent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Admits no call of a key for this long, or until its pause is over if that takes longer. The key needs no state.
    ///
    /// # Errors
    ///
    /// If Redis fails. The key may be paused all the same.
    pub async fn pause(&self, key: &str, reading: &Reading, duration: Duration) -> Result<(), StoreError> {
        let micros = duration.min(MAX_PAUSE).as_micros() as u64;
        let pause = Correction::pause(Key::raw(key), *reading.pausing(), micros);
        self.store.correct_all(vec![pause]).await.map(drop)
    }

    /// Returns the version of the overrides in a namespace, and their text; both are empty if there are none.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn overrides(&self, namespace: &str) -> Result<(String, String), StoreError> {
        let (version, text) = self.store.overrides(&NamespaceText::new(namespace)).read().await?;
        Ok((version.unwrap_or_default(), text))
    }

    /// Returns the policies that programs with overrides in a namespace have, each as JSON of
    /// [`PolicyInfo`](crate::PolicyInfo). The `prefix` of limiters is unknown.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn inventory(&self, namespace: &str) -> Result<Vec<String>, StoreError> {
        self.store.overrides(&NamespaceText::new(namespace)).inventory().await
    }

    /// Returns the time by which overrides of a namespace end, in seconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn now(&self, namespace: &str) -> Result<u64, StoreError> {
        self.store.overrides(&NamespaceText::new(namespace)).now().await
    }

    /// Replaces the overrides in a namespace, if they still have this version, and notes these changes in the log, of which the last
    /// thousand stay. Returns whether they had.
    ///
    /// # Errors
    ///
    /// If Redis fails. The overrides may be replaced all the same.
    pub async fn replace_overrides(
        &self,
        namespace: &str,
        version: &str,
        text: &str,
        changes: &[String],
    ) -> Result<bool, StoreError> {
        self.store.overrides(&NamespaceText::new(namespace)).replace(version, text, changes).await
    }

    /// Returns the changes of overrides in a namespace, the last one first, with their times in seconds since the Unix epoch.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn override_log(&self, namespace: &str) -> Result<Vec<(u64, String)>, StoreError> {
        self.store.overrides(&NamespaceText::new(namespace)).log().await
    }

    /// Deletes keys, each with a command of its own. Returns how many there were.
    ///
    /// # Errors
    ///
    /// If Redis fails. Some keys may be deleted all the same.
    pub async fn delete(&self, keys: &[String]) -> Result<u64, StoreError> {
        let deletions = stream::iter(keys).map(async |key| self.store.reset(&Key::raw(key.as_str())).await);
        let count = async |deleted, existed: bool| Ok(deleted + u64::from(existed));
        deletions.buffer_unordered(DELETIONS).try_fold(0, count).await
    }
}

fn look(key: &str, spec: AlgorithmSpec) -> Charge {
    Charge { key: Key::raw(key), spec, cost: 0, wait: 0, shadow: false }
}

/// Returns what was read, unless Redis fails; `None` if it is no state.
fn readable(outcome: Result<Box<Outcome>, StoreError>) -> Result<Option<Box<Outcome>>, StoreError> {
    match outcome {
        Ok(outcome) => Ok(Some(outcome)),
        Err(error) if error.is_permanent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns the key of the overrides in a namespace.
#[must_use]
pub fn overrides_key(namespace: &str) -> String {
    NamespaceText::new(namespace).overrides_key()
}

/// Returns the key of the log of overrides in a namespace.
#[must_use]
pub fn override_log_key(namespace: &str) -> String {
    NamespaceText::new(namespace).override_log_key()
}

/// Returns the key of the inventory in a namespace.
#[must_use]
pub fn inventory_key(namespace: &str) -> String {
    NamespaceText::new(namespace).inventory_key()
}

/// The keys that match a pattern, a few at a time.
#[derive(Debug)]
pub struct Scan<'a> {
    store: &'a RedisStore,
    pattern: String,
    masters: Vec<Master>,
    /// The number of servers whose keys have all been returned.
    done: usize,
    cursor: u64,
    seen: Seen,
}

/// The hashes of the keys so far: Redis may return a key twice.
#[derive(Default)]
struct Seen {
    hasher: RandomState,
    hashes: HashSet<u64>,
}

impl Scan<'_> {
    /// Returns the next keys, which may be none; `None` after the last. Each key is returned once.
    ///
    /// # Errors
    ///
    /// If Redis fails.
    pub async fn next(&mut self) -> Result<Option<Vec<String>>, StoreError> {
        let Some(master) = self.masters.get(self.done) else { return Ok(None) };
        let (cursor, keys) = self.store.scan(master, self.cursor, &self.pattern, SCAN_COUNT).await?;
        self.cursor = cursor;
        if cursor == 0 {
            self.done += 1;
        }
        let keys = keys.into_iter().filter_map(|key| String::from_utf8(key).ok());
        Ok(Some(keys.filter(|key| self.seen.is_new(key)).collect()))
    }

    /// Returns about how much of the keys it has gone through, from 0 to 1.
    #[must_use]
    pub fn progress(&self) -> f64 {
        // Redis counts the bits of a cursor from the highest to the lowest. In a Cluster a cursor may begin with a slot.
        let of_server = if self.masters.len() > 1 { 0 } else { self.cursor.reverse_bits() };
        (self.done as f64 + of_server as f64 / 2f64.powi(64)) / self.masters.len().max(1) as f64
    }
}

impl Seen {
    fn is_new(&mut self, key: &str) -> bool {
        self.hashes.insert(self.hasher.hash_one(key))
    }
}

/// Without the hashes.
impl fmt::Debug for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Seen").field("keys", &self.hashes.len()).finish_non_exhaustive()
    }
}

/// Without the URL, which may hold a password, and the certificates.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").finish_non_exhaustive()
    }
}
