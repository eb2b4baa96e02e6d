//! Stores under a clock that the test sets.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ratelimit_runtime::store::{
    Charge, ChargeId, Clock, Key, MemoryStore, Outcome, RedisStore, Store, StoreError,
};
use redis::aio::MultiplexedConnection;

use super::policies::Pair;
use super::registries::LONG_DEADLINE;
use super::server::Server;

/// The zero of test times, in microseconds since the Unix epoch: a whole number of seconds, 20 s after a whole minute.
pub(crate) const START: u64 = 1_700_000_000_000_000;

/// A second in microseconds.
pub(crate) const S: i64 = 1_000_000;

/// The longest time that a policy remembers and a call can wait, in microseconds.
pub(crate) const FOREVER: i64 = 3650 * 86_400 * S;

/// The microseconds by which the clock of a server may step back. Valkey 9.1 steps back by up to 3.
pub(crate) const MAX_STEP_BACK: u64 = 10;

/// The `expires_at` of a key without an expiry.
const NEVER: u64 = u64::MAX;

pub(crate) struct TestStore {
    pub(crate) name: &'static str,
    pub(crate) store: Store,
    /// Starts every key, so that tests on one server do not share any.
    prefix: String,
    clock: TestClock,
}

enum TestClock {
    Memory { time: Arc<AtomicU64>, is_locked: bool },
    Redis { key: String, connection: MultiplexedConnection, _server: Arc<Server> },
}

/// The content of a key in Redis, and the Unix second at which the store lets it expire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredValue {
    pub(crate) dump: Vec<u8>,
    pub(crate) expires_at: u64,
}

impl TestStore {
    /// Returns a store for each way in which the library decides.
    pub(crate) async fn all() -> Vec<TestStore> {
        let memory = TestStore::in_process();
        let redis = [
            TestStore::redis(Server::shared()).await,
            TestStore::redis_by("Redis in full", Server::shared(), RedisStore::without_first_pass).await,
        ];
        memory.into_iter().chain(redis).collect()
    }

    /// Returns a store for each way in which the library decides in process.
    pub(crate) fn in_process() -> Vec<TestStore> {
        vec![TestStore::memory("memory", false), TestStore::memory("locked memory", true)]
    }

    /// A store in process. It decides plain states without a lock, unless every decision is to take the lock.
    fn memory(name: &'static str, is_locked: bool) -> Self {
        let time = Arc::new(AtomicU64::new(START));
        let store = memory_store(&time, is_locked);
        TestStore { name, store, prefix: prefix(), clock: TestClock::Memory { time, is_locked } }
    }

    /// Empties a store in process. With many keys it drops expired states, which a clock that steps back would bring back.
    pub(crate) fn clear_memory(&mut self) {
        if let TestClock::Memory { time, is_locked } = &self.clock {
            self.store = memory_store(time, *is_locked);
        }
    }

    pub(crate) async fn redis(server: Arc<Server>) -> Self {
        TestStore::redis_by("Redis", server, |store| store).await
    }

    async fn redis_by(
        name: &'static str,
        server: Arc<Server>,
        by: impl FnOnce(RedisStore) -> RedisStore,
    ) -> Self {
        let prefix = prefix();
        let key = format!("{prefix}clock");
        let now = format!("tonumber(redis.call('GET', '{key}'))");
        // Redis itself keeps the key for an hour, as its own clock is not the test's.
        let expire = "redis.call('SET', key .. ':expires', second) redis.call('EXPIRE', key, 3600)";
        let store = RedisStore::lazy(&server.url()).expect("the URL is valid");
        let store = by(store.with_time(&now, expire).with_deadline(LONG_DEADLINE));
        let store = Store::Redis(Arc::new(store));
        let connection = server.connect().await;
        let clock = TestClock::Redis { key, connection, _server: server };
        TestStore { name, store, prefix, clock }
    }

    pub(crate) fn is_redis(&self) -> bool {
        matches!(self.clock, TestClock::Redis { .. })
    }

    /// Sets the clock to `at` microseconds after [`START`].
    pub(crate) async fn set_time(&self, at: i64) {
        let now = START.checked_add_signed(at).expect("a time after the epoch");
        match &self.clock {
            TestClock::Memory { time, .. } => time.store(now, Ordering::SeqCst),
            TestClock::Redis { key, connection, .. } => {
                let mut connection = connection.clone();
                let set: Result<(), _> =
                    redis::cmd("SET").arg(key).arg(now).query_async(&mut connection).await;
                set.expect("the clock is set");
            }
        }
    }

    pub(crate) fn key(&self, name: &str) -> Key {
        Key::raw(self.key_text(name))
    }

    pub(crate) fn key_text(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    pub(crate) fn charge(&self, name: &str, pair: &Pair, cost: u64) -> Charge {
        Charge { key: self.key(name), spec: pair.spec, cost, wait: 0, shadow: false }
    }

    pub(crate) async fn try_decide_lists(
        &self,
        lists: &[&[Charge]],
    ) -> Vec<Result<Box<Outcome>, StoreError>> {
        let outcomes = self.store.decide_many(lists).await;
        assert_eq!(outcomes.len(), lists.len());
        outcomes
    }

    /// Decides several lists of charges in one call.
    pub(crate) async fn decide_lists(&self, lists: &[&[Charge]]) -> Vec<Outcome> {
        let outcomes = self.try_decide_lists(lists).await.into_iter();
        outcomes.map(|outcome| *outcome.expect("the store responds")).collect()
    }

    pub(crate) async fn decide(&self, charges: &[Charge]) -> Outcome {
        *self.store.decide(charges).await.expect("the store responds")
    }

    /// Decides a single charge at this time.
    pub(crate) async fn decide_at(&self, at: i64, name: &str, pair: &Pair, cost: u64) -> Outcome {
        self.set_time(at).await;
        self.decide(&[self.charge(name, pair, cost)]).await
    }

    pub(crate) async fn refund(&self, name: &str, pair: &Pair, cost: u64, charge_id: Option<ChargeId>) {
        let refunded = self.store.refund(&self.key(name), &pair.spec, cost, charge_id).await;
        refunded.expect("the store responds");
    }

    pub(crate) async fn debit(&self, name: &str, pair: &Pair, cost: u64) {
        self.store.debit(&self.key(name), &pair.spec, cost).await.expect("the store responds");
    }

    pub(crate) async fn penalize(&self, name: &str, pair: &Pair, steps: &'static [u64]) -> Option<u64> {
        self.store.penalize(&self.key(name), &pair.spec, steps).await.expect("the store responds")
    }

    pub(crate) async fn pause(&self, name: &str, pair: &Pair, micros: u64) {
        self.store.pause(&self.key(name), &pair.spec, micros).await.expect("the store responds");
    }

    pub(crate) async fn reset(&self, name: &str) {
        self.store.reset(&self.key(name)).await.expect("the store responds");
    }

    /// Returns what Redis holds under the keys, or `None` in process.
    pub(crate) async fn stored(&self, names: &[&str]) -> Option<Vec<Option<StoredValue>>> {
        const READ: &str = "
            local found = {}
            for i, key in ipairs(KEYS) do
                found[i] = {redis.call('DUMP', key) or '', redis.call('GET', key .. ':expires') or '0', redis.call('PTTL', key)}
            end
            return found";
        let mut connection = self.connection()?;
        let mut call = redis::cmd("EVAL");
        call.arg(READ).arg(names.len());
        for name in names {
            call.arg(self.key_text(name));
        }
        let found: Vec<(Vec<u8>, u64, i64)> =
            call.query_async(&mut connection).await.expect("the server responds");
        let values = found.into_iter().map(|(dump, expires_at, ttl)| {
            let expires_at = if ttl > 0 { expires_at } else { NEVER };
            (!dump.is_empty()).then_some(StoredValue { dump, expires_at })
        });
        Some(values.collect())
    }

    /// Returns the connection of a store in Redis.
    pub(crate) fn connection(&self) -> Option<MultiplexedConnection> {
        match &self.clock {
            TestClock::Memory { .. } => None,
            TestClock::Redis { connection, .. } => Some(connection.clone()),
        }
    }
}

pub(crate) async fn on_each_store(test: impl AsyncFn(TestStore)) {
    for store in TestStore::all().await {
        test(store).await;
    }
}

/// Returns the clock's time at `at` microseconds after [`START`].
pub(crate) fn absolute(at: i64) -> i128 {
    i128::from(START) + i128::from(at)
}

fn memory_store(time: &Arc<AtomicU64>, is_locked: bool) -> Store {
    let store = MemoryStore::new(1_000_000, Clock::manual(Arc::clone(time)));
    Store::Memory(Arc::new(if is_locked { store.locked() } else { store }))
}

fn prefix() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("t{}:", NEXT.fetch_add(1, Ordering::Relaxed))
}
