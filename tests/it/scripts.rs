//! A script that fails on the server's side, at whichever of its commands: all of a decision is charged or nothing is, and
//! no key is left without an expiry.

mod acl;
mod cases;
mod troubles;
mod values;

use ratelimit_runtime::store::{Charge, Outcome, RedisStore, StoreError};
use redis::aio::MultiplexedConnection;

use crate::support::registries::PATIENT;
use crate::support::server::Server;
use cases::{CASES, Case};

/// Every command that the scripts call, and the two that call them.
const COMMANDS: [&str; 14] = [
    "evalsha", "eval", "time", "get", "set", "incrby", "expireat", "del", "llen", "lindex", "lrange", "lset",
    "ltrim", "rpush",
];

/// A server of the test's own, and a store that asks it as a user who may only what the scripts need.
struct Bench {
    store: RedisStore,
    admin: MultiplexedConnection,
    server: Server,
}

/// What Redis holds under a key, and the millisecond at which it goes, -1 for never.
type Held = (Vec<u8>, i64);

impl Bench {
    async fn start() -> Self {
        let server = Server::start();
        let admin = server.connect().await;
        let mut bench = Bench { store: store(&server), admin, server };
        bench.send("ACL SETUSER least on >secret ~rl:* -@all +ping").await;
        for command in COMMANDS {
            bench.send(&format!("ACL SETUSER least +{command}")).await;
        }
        bench
    }

    /// Sends a command as one who may everything.
    async fn send(&mut self, command: &str) -> redis::Value {
        let words: Vec<&str> = command.split(' ').collect();
        let sent = redis::cmd(words[0]).arg(&words[1..]).query_async(&mut self.admin).await;
        sent.unwrap_or_else(|error| panic!("{command}: {error}"))
    }

    async fn now(&mut self) -> u64 {
        let (seconds, micros): (u64, u64) =
            redis::cmd("TIME").query_async(&mut self.admin).await.expect("the server answers");
        seconds * 1_000_000 + micros
    }

    /// Nothing under any key, then what `state` says: see [`Case::prepare`].
    async fn prepare(&mut self, state: &str) {
        self.forget_trouble();
        self.send("FLUSHALL").await;
        for case in CASES {
            case.prepare(self, state).await;
        }
    }

    async fn held(&mut self) -> Vec<Held> {
        const LOOK: &str = "
            local found = {}
            for i, key in ipairs(KEYS) do
                found[i] = {redis.call('DUMP', key) or '', redis.call('PEXPIRETIME', key)}
            end
            return found";
        let mut call = redis::cmd("EVAL");
        call.arg(LOOK).arg(CASES.len());
        for case in CASES {
            call.arg(case.text());
        }
        call.query_async(&mut self.admin).await.expect("the server answers")
    }

    /// Goes on with a store that knows of no trouble: one that does asks less often.
    fn forget_trouble(&mut self) {
        self.store = store(&self.server);
    }

    async fn decide(&self, charges: &[Charge]) -> Result<Outcome, StoreError> {
        self.store.decide(charges).await
    }
}

fn store(server: &Server) -> RedisStore {
    RedisStore::lazy(&server.url_as("least", "secret")).expect("the URL is right").with_deadline(PATIENT)
}

/// Lists that take every place in turn: of all, of all with every second in shadow, of all in shadow, of one, and of all before
/// one that refuses.
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

/// All that an error tells.
fn text(error: &StoreError) -> String {
    let source = std::error::Error::source(error).map_or_else(String::new, ToString::to_string);
    format!("{error}: {source}")
}

/// Whether an error says that something is wrong for good.
fn is_defect(error: &StoreError) -> bool {
    format!("{error:?}").contains("permanent: true")
}
