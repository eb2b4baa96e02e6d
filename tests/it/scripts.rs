//! Scripts that fail in the server, at any of their commands: a decision is charged completely or not at all, and no key is
//! left without an expiry.

mod cases;
mod corrupt_values;
mod first_pass;
mod holds;
mod pauses;
mod permissions;
mod server_errors;

use ratelimit_runtime::store::{Charge, Outcome, RedisStore, StoreError};
use redis::aio::MultiplexedConnection;

use crate::support::budget::budget;
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use cases::{CASES, Case, State};

/// The commands that scripts call, and the two that call scripts.
const COMMANDS: [&str; 14] = [
    "evalsha", "eval", "time", "get", "set", "incrby", "expireat", "del", "llen", "lindex", "lrange", "lset",
    "ltrim", "rpush",
];

/// A server, and a store whose user may only do what the scripts need.
struct Fixture {
    store: RedisStore,
    admin: MultiplexedConnection,
    server: Server,
}

/// What Redis stores under a key.
#[derive(Debug, PartialEq)]
struct Stored {
    /// Empty if there is no such key.
    dump: Vec<u8>,
    /// In Unix milliseconds, negative if there is no expiry.
    expires_at: i64,
}

/// The commands that start and end a fault of the server.
struct Fault {
    start: String,
    end: String,
}

/// What Redis stored before and after some calls.
struct Change {
    before: Vec<Stored>,
    after: Vec<Stored>,
}

impl Fixture {
    async fn start() -> Self {
        let server = Server::start();
        let admin = server.connect().await;
        let mut fixture = Fixture { store: store(&server), admin, server };
        fixture.send("ACL SETUSER least on >secret ~rl:* -@all +ping").await;
        for command in COMMANDS {
            fixture.send(&format!("ACL SETUSER least +{command}")).await;
        }
        fixture
    }

    /// Sends a command as a user with all permissions.
    async fn send(&mut self, command: &str) -> redis::Value {
        let words: Vec<&str> = command.split(' ').collect();
        let reply = redis::cmd(words[0]).arg(&words[1..]).query_async(&mut self.admin).await;
        reply.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    async fn now(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) =
            redis::cmd("TIME").query_async(&mut self.admin).await.expect("the server answers");
        seconds * 1_000_000 + micros
    }

    /// Puts the key of each case into this state.
    async fn prepare(&mut self, state: State) {
        self.prepare_only(&CASES, state).await;
    }

    /// Puts the keys of these cases into this state. There are no others then.
    async fn prepare_only(&mut self, cases: &[Case], state: State) {
        self.reconnect();
        self.send("FLUSHALL").await;
        Case::prepare(cases, self, state).await;
    }

    async fn stored(&mut self) -> Vec<Stored> {
        let keys: Vec<_> = CASES.iter().map(Case::text).collect();
        self.stored_under(&keys).await
    }

    async fn stored_under(&mut self, keys: &[String]) -> Vec<Stored> {
        // Redis 6.2 has no PEXPIRETIME. All expiries are whole seconds.
        const SCRIPT: &str = "
            local stored, time = {}, redis.call('TIME')
            for i, key in ipairs(KEYS) do
                local expires_at = redis.call('PTTL', key)
                if expires_at > 0 then
                    expires_at = math.floor(time[1] + time[2] / 1000000 + expires_at / 1000 + 0.5)
                end
                stored[i] = {redis.call('DUMP', key) or '', expires_at}
            end
            return stored";
        let mut call = redis::cmd("EVAL");
        call.arg(SCRIPT).arg(keys.len()).arg(keys);
        let stored: Vec<(Vec<u8>, i64)> =
            call.query_async(&mut self.admin).await.expect("the server answers");
        stored.into_iter().map(|(dump, expires_at)| Stored { dump, expires_at }).collect()
    }

    /// Makes calls during a fault. Every key must still expire after them.
    async fn during<T>(&mut self, fault: &Fault, calls: impl AsyncFnOnce(&RedisStore) -> T) -> (T, Change) {
        let before = self.stored().await;
        self.send(&fault.start).await;
        let result = calls(&self.store).await;
        self.send(&fault.end).await;
        let after = self.stored().await;
        assert!(after.iter().all(Stored::is_absent_or_expires), "{:?}: {after:?}", fault.start);
        (result, Change { before, after })
    }

    /// Replaces the store, whose circuit breaker may be open.
    fn reconnect(&mut self) {
        self.store = store(&self.server);
    }
}

impl Stored {
    fn is_absent_or_expires(&self) -> bool {
        self.dump.is_empty() || self.expires_at > 0
    }
}

impl Fault {
    fn new(start: &str, end: &str) -> Self {
        Fault { start: start.to_owned(), end: end.to_owned() }
    }

    fn denied(commands: &[&str]) -> Self {
        let acl = |sign| {
            let rules: Vec<_> = commands.iter().map(|name| format!("{sign}{name}")).collect();
            format!("ACL SETUSER least {}", rules.join(" "))
        };
        Fault::new(&acl('-'), &acl('+'))
    }
}

impl Change {
    fn assert_none(&self, context: &str) {
        assert_eq!(self.before, self.after, "{context}");
    }

    /// Checks that every charge that counts was made, and no other.
    fn assert_charged(&self, charges: &[Charge], outcome: &Outcome, state: State, context: &str) {
        for (i, case) in CASES.iter().enumerate() {
            let index = charges.iter().position(|charge| charge.key == case.key());
            let charged = index.is_some_and(|index| {
                let failed = outcome.failed.iter().any(|(failed, _)| *failed == index);
                outcome.admitted && outcome.verdicts[index].admitted && !failed
            });
            // Even a refused decision moves a state from the future to now.
            let moved = state == State::Future && index.is_some() && !charged;
            let changed = self.before[i] != self.after[i];
            assert!(moved || changed == charged, "{context}: {}, charged: {charged}", case.name);
        }
    }
}

fn store(server: &Server) -> RedisStore {
    RedisStore::lazy(&server.url_as("least", "secret"))
        .expect("the URL is right")
        .with_deadline(LONG_DEADLINE)
}

/// Lists of charges in which every case has every position: all cases, all with every other one in shadow, all in shadow,
/// one case, and all with a last one that is refused.
fn lists() -> Vec<Vec<Charge>> {
    let mut lists = Vec::new();
    for first in 0..CASES.len() {
        let mut all: Vec<Charge> = CASES.iter().map(Case::charge).collect();
        all.rotate_left(first);
        let shadowed = |every: usize| {
            let mut list = all.clone();
            list.iter_mut().step_by(every).for_each(|charge| charge.shadow = true);
            list
        };
        let mut refused = all.clone();
        let last = refused.last_mut().expect("there are some");
        last.cost = 1000;
        lists.extend([shadowed(2), shadowed(1), vec![all[0].clone()], refused, all]);
    }
    lists
}

/// Returns some of the lists, others for each `round`, or all of them with a long budget.
fn some_lists(round: usize) -> impl Iterator<Item = Vec<Charge>> {
    // Coprime to the kinds of lists and to the cases, so that each turns up.
    let step = budget(7, 1) as usize;
    lists().into_iter().skip(round % step).step_by(step)
}

/// Returns the text of an error and of its source, in lower case. It must not contain a key.
fn text(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
    let text = format!("{error}: {source}").to_lowercase();
    assert!(!text.contains("rl:"), "{text}");
    text
}

fn is_permanent(error: &StoreError) -> bool {
    !error.is_transient()
}
