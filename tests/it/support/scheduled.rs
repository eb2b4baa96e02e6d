//! Stores under a time that the test sets, in memory and in Redis behind one interface.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratelimit_runtime::store::{Charge, Clock, Key, MemoryStore, Outcome, RedisStore, Store};
use redis::aio::MultiplexedConnection;

use super::registries::PATIENT;
use super::server::Server;

/// Where times begin, in microseconds since the Unix epoch: a whole number of seconds, and nothing rounder.
pub(crate) const START: u64 = 1_700_000_000_000_000;

pub(crate) struct Scheduled {
    pub(crate) store: Store,
    /// Before every key, so that tests on one server do not meet.
    prefix: String,
    time: Time,
}

enum Time {
    Memory(Arc<AtomicU64>),
    Redis { clock: String, connection: MultiplexedConnection, _server: Arc<Server> },
}

/// The expiry of a key that has none.
pub(crate) const NEVER: u64 = u64::MAX;

/// What Redis holds under a key, and the Unix second at which the store wants it gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Held {
    pub(crate) dump: Vec<u8>,
    pub(crate) expires: u64,
}

impl Scheduled {
    pub(crate) fn memory() -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let store = Store::Memory(Arc::new(MemoryStore::new(1_000_000, Clock::manual(Arc::clone(&time)))));
        Scheduled { store, prefix: prefix(), time: Time::Memory(time) }
    }

    pub(crate) async fn redis(server: Arc<Server>) -> Self {
        let prefix = prefix();
        let clock = format!("{prefix}clock");
        let now = format!("tonumber(redis.call('GET', '{clock}'))");
        // Redis itself keeps the key for an hour: its own clock has nothing to say here.
        let expire = "redis.call('SET', key .. ':expires', int(second)) redis.call('EXPIRE', key, 3600)";
        let store = RedisStore::lazy(&server.url()).expect("the URL is right");
        let store = store.with_time(&now, expire).with_deadline(PATIENT);
        let connection = server.connect().await;
        let time = Time::Redis { clock, connection, _server: server };
        Scheduled { store: Store::Redis(Arc::new(store)), prefix, time }
    }

    /// Sets the time to so many microseconds after [`START`].
    pub(crate) async fn set(&self, at: i64) {
        let now = START.checked_add_signed(at).expect("a time after the epoch");
        match &self.time {
            Time::Memory(time) => time.store(now, Ordering::SeqCst),
            Time::Redis { clock, connection, .. } => {
                let mut connection = connection.clone();
                let set: Result<(), _> =
                    redis::cmd("SET").arg(clock).arg(now).query_async(&mut connection).await;
                set.expect("the clock is set");
            }
        }
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::raw(self.text(name))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Decides one list.
    pub(crate) async fn decide(&self, charges: &[Charge]) -> Outcome {
        let mut outcomes = self.store.decide(&[charges]).await;
        assert_eq!(outcomes.len(), 1);
        outcomes.remove(0).expect("the store answers")
    }

    /// What Redis holds under the keys. In memory nothing is to be seen.
    pub(crate) async fn held(&self, names: &[&str]) -> Option<Vec<Option<Held>>> {
        const LOOK: &str = "
            local found = {}
            for i, key in ipairs(KEYS) do
                found[i] = {redis.call('DUMP', key) or '', redis.call('GET', key .. ':expires') or '0', redis.call('PTTL', key)}
            end
            return found";
        let Time::Redis { connection, .. } = &self.time else { return None };
        let mut call = redis::cmd("EVAL");
        call.arg(LOOK).arg(names.len());
        for name in names {
            call.arg(self.text(name));
        }
        let mut connection = connection.clone();
        let found: Vec<(Vec<u8>, u64, i64)> =
            call.query_async(&mut connection).await.expect("the server answers");
        let held = found.into_iter().map(|(dump, expires, ttl)| {
            if dump.is_empty() {
                return None;
            }
            Some(Held { dump, expires: if ttl > 0 { expires } else { NEVER } })
        });
        Some(held.collect())
    }

    /// The connection of a store in Redis, for what the test does there by itself.
    pub(crate) fn connection(&self) -> Option<MultiplexedConnection> {
        match &self.time {
            Time::Memory(_) => None,
            Time::Redis { connection, .. } => Some(connection.clone()),
        }
    }
}

/// Runs a test on each store.
pub(crate) async fn on_each_store(test: impl AsyncFn(Scheduled)) {
    test(Scheduled::memory()).await;
    test(Scheduled::redis(Server::shared()).await).await;
}

fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}:", NEXT.fetch_add(1, Ordering::Relaxed))
}
