//! The holds of a key in Redis: the scripts do, message by message, what their model in Rust does.

mod batches;
mod corrupt;
mod failures;
mod model;

use std::collections::BTreeMap;

use ratelimit_runtime::algorithm::believed_holds::{Speaker, Take};
use ratelimit_runtime::store::account::Message;
use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{Cmd, FromRedisValue, RedisResult, Script, Value};

use super::Fixture;

/// The number of the algorithm in the arguments of the scripts.
const KIND: i8 = 10;
const SECOND: u64 = 1_000_000;
const KEY: &str = "rl:holds";

/// The commands that holds need beyond those of other limits.
const COMMANDS: [&str; 4] = ["hmget", "hgetall", "hset", "hdel"];

/// The scripts, as the server's clock or a test's has them.
struct Scripts {
    decide: Script,
    correct: Script,
}

/// A charge of a list, as the script reads it.
#[derive(Clone, Debug)]
struct Charge {
    key: String,
    kind: i8,
    numbers: [f64; 5],
    /// The permits that the process has released, its number and its epoch.
    take: Option<[f64; 3]>,
}

/// What the script has found of a charge of holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Found {
    admits: bool,
    held: u64,
    is_forgotten: bool,
}

/// A message about the holds of a key.
#[derive(Clone, Copy, Debug)]
struct Said {
    of: Speaker,
    message: Message,
    ttl: u64,
}

/// What a hash has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stored {
    total: u64,
    soonest: u64,
    ends: u64,
    shares: BTreeMap<(u64, u64), Share>,
    turns: Vec<Turn>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Turn {
    process: u64,
    permits: u64,
    until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    permits: u64,
    until: u64,
    released: u64,
    is_reported: bool,
}

impl Scripts {
    fn new() -> Self {
        Scripts::by(|script| script)
    }

    /// The scripts without their passes.
    fn in_full() -> Self {
        Scripts::by(|script| ratelimit_lua::without_first_pass(&script))
    }

    fn by(finish: impl Fn(String) -> String) -> Self {
        let script = |source| Script::new(&finish(source));
        Scripts { decide: script(ratelimit_lua::decide(None)), correct: script(ratelimit_lua::correct()) }
    }

    /// Decides a list of charges, and returns the elements of the decision, or the text of an error.
    async fn decide(
        &self,
        connection: &mut impl ConnectionLike,
        list: &[Charge],
    ) -> RedisResult<Result<Vec<Value>, String>> {
        let (mut format, mut packed, mut takes) = ("<".to_owned(), Vec::new(), Vec::new());
        let mut call = self.decide.prepare_invoke();
        for charge in list {
            call.key(&charge.key);
            format += "bddddd";
            packed.extend(charge.pack());
            takes.extend(charge.pack_take());
        }
        call.arg(list.len()).arg(format).arg(packed);
        if !takes.is_empty() {
            call.arg(takes);
        }
        let reply = match call.invoke_async(connection).await? {
            Value::BulkString(packed) => return Ok(Ok(unpacked(&packed, list))),
            other => Vec::<Value>::from_redis_value(other)?,
        };
        Ok(match &reply[1..] {
            [Value::Array(elements)] => Ok(elements.clone()),
            [Value::BulkString(error)] => Err(String::from_utf8_lossy(error).into_owned()),
            other => panic!("{other:?}"),
        })
    }

    /// Sends a correction, and returns its text.
    async fn correct(
        &self,
        connection: &mut impl ConnectionLike,
        key: &str,
        kind: i8,
        numbers: [u64; 6],
    ) -> RedisResult<String> {
        let mut call = self.correct.prepare_invoke();
        call.key(key).arg(packed_correction(kind, numbers));
        let texts: Vec<String> = call.invoke_async(connection).await?;
        assert_eq!(texts.len(), 1);
        Ok(texts.into_iter().next().expect("there is one"))
    }

    /// Says something other than a take.
    async fn say(&self, connection: &mut impl ConnectionLike, key: &str, said: Said) -> RedisResult<String> {
        self.correct(connection, key, KIND, said.numbers()).await
    }
}

impl Said {
    /// Returns the arguments of the correction.
    fn numbers(self) -> [u64; 6] {
        let Said { of, message, ttl } = self;
        let [op, permits, number] = match message {
            Message::Release(released) => [1, 0, released],
            Message::Extend => [2, 0, 0],
            Message::Report(permits) => [3, permits, 0],
            Message::Take(_) => panic!("a take is a charge"),
        };
        [op, permits, number, of.process, of.epoch, ttl]
    }
}

impl Charge {
    fn take(key: &str, of: Speaker, take: Take, max: u64, ttl: u64) -> Self {
        let released = if take.has_share { -1.0 - take.released as f64 } else { take.released as f64 };
        let ttl = ttl as f64 * if take.waits { -1.0 } else { 1.0 };
        let numbers = [take.permits as f64, max as f64, 0.0, ttl, 0.0];
        let take = Some([released, of.process as f64, of.epoch as f64]);
        Charge { key: key.to_owned(), kind: KIND, numbers, take }
    }

    fn pack(&self) -> Vec<u8> {
        let numbers = self.numbers.iter().flat_map(|number| number.to_le_bytes());
        std::iter::once(self.kind as u8).chain(numbers).collect()
    }

    fn pack_take(&self) -> Vec<u8> {
        self.take.iter().flatten().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn peek(key: &str, max: u64) -> Self {
        Charge { key: key.to_owned(), kind: KIND, numbers: [0.0, max as f64, 0.0, 0.0, 0.0], take: None }
    }

    /// A charge of a fixed window that has room for one permit an hour.
    fn window(key: &str, cost: u64) -> Self {
        Charge { key: key.to_owned(), kind: 2, numbers: [cost as f64, 1.0, 3.6e9, 0.0, 0.0], take: None }
    }
}

impl Found {
    fn read(elements: &[Value]) -> Self {
        let [Value::Int(admits), Value::Int(held), Value::Int(is_forgotten), ..] = *elements else {
            panic!("{elements:?}")
        };
        Found { admits: admits == 1, held: held as u64, is_forgotten: is_forgotten == 1 }
    }
}

impl Stored {
    /// Returns what is under a key, if anything is.
    async fn read(connection: &mut impl ConnectionLike, key: &str) -> Option<Stored> {
        let fields: Vec<(Vec<u8>, Vec<u8>)> =
            redis::cmd("HGETALL").arg(key).query_async(connection).await.expect("it is a hash");
        Stored::from_fields(&fields)
    }

    fn from_fields(fields: &[(Vec<u8>, Vec<u8>)]) -> Option<Stored> {
        let mut stored = Stored::default();
        for (field, value) in fields {
            let numbers = numbers(value);
            if field == b"sum" {
                (stored.total, stored.soonest, stored.ends) = (numbers[0], numbers[1], numbers[2]);
                let turn = |turn: &[u64; 3]| Turn { process: turn[0], permits: turn[1], until: turn[2] };
                stored.turns = numbers[3..].as_chunks().0.iter().map(turn).collect();
                continue;
            }
            let [process, epoch] = self::numbers(field)[..] else { panic!("{field:?}") };
            let [permits, until, released, reported] = numbers[..] else { panic!("{value:?}") };
            let share = Share { permits, until, released, is_reported: reported == 1 };
            stored.shares.insert((process, epoch), share);
        }
        (!fields.is_empty()).then_some(stored)
    }

    /// Writes it, to expire when it ends.
    async fn write(&self, connection: &mut impl ConnectionLike, key: &str) {
        let mut commands = redis::pipe();
        commands.cmd("DEL").arg(key).cmd("HSET").arg(key);
        commands.arg("sum").arg(pack([self.total, self.soonest, self.ends]));
        for ((process, epoch), share) in &self.shares {
            commands.arg(pack([*process, *epoch])).arg(share.pack());
        }
        commands.cmd("EXPIREAT").arg(key).arg(self.ends);
        commands.exec_async(connection).await.expect("the server answers");
    }

    fn of(shares: impl IntoIterator<Item = ((u64, u64), Share)>) -> Self {
        let shares: BTreeMap<_, _> = shares.into_iter().collect();
        let until = || shares.values().map(|share| share.until);
        Stored {
            total: shares.values().map(|share| share.permits).sum(),
            soonest: until().min().unwrap_or(0),
            ends: until().max().unwrap_or(0) / SECOND + 1,
            shares,
            turns: Vec::new(),
        }
    }

    /// Checks what is always true of it.
    fn check(&self, context: &str) {
        let all = || self.shares.values();
        assert_eq!(self.total, all().map(|share| share.permits).sum::<u64>(), "{context}: {self:?}");
        let times = self.soonest..self.ends * SECOND;
        assert!(all().all(|share| times.contains(&share.until)), "{context}: {self:?}");
    }
}

impl Share {
    fn new(permits: u64, until: u64) -> Self {
        Share { permits, until, released: 0, is_reported: false }
    }

    fn pack(self) -> Vec<u8> {
        pack([self.permits, self.until, self.released, u64::from(self.is_reported)])
    }
}

/// Starts a server whose user may also run the commands of holds, and returns a connection of that user, and the scripts with and
/// without passes, which the server knows.
async fn start() -> (Fixture, MultiplexedConnection, [Scripts; 2]) {
    let mut fixture = Fixture::start().await;
    for command in COMMANDS {
        fixture.send(&format!("ACL SETUSER least +{command}")).await;
    }
    let client = redis::Client::open(fixture.server.url_as("least", "secret")).expect("the URL is right");
    let user = client.get_multiplexed_async_connection().await.expect("the server answers");
    let scripts = [Scripts::new(), Scripts::in_full()];
    for script in scripts.iter().flat_map(|scripts| [&scripts.decide, &scripts.correct]) {
        script.prepare_invoke().load_async(&mut fixture.admin).await.expect("the server answers");
    }
    (fixture, user, scripts)
}

/// Returns numbers as a hash has them, and back.
fn pack<const N: usize>(numbers: [u64; N]) -> Vec<u8> {
    numbers.iter().flat_map(|number| (*number as f64).to_le_bytes()).collect()
}

fn numbers(packed: &[u8]) -> Vec<u64> {
    packed.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as u64).collect()
}

fn packed_correction(kind: i8, numbers: [u64; 6]) -> Vec<u8> {
    let numbers = numbers.iter().chain(&[0]).flat_map(|number| (*number as f64).to_le_bytes());
    // No more of its key follow.
    [kind as u8, 0].into_iter().chain(numbers).collect()
}

/// Returns what the pass over plain states has replied, as what is replied in full.
fn unpacked(packed: &[u8], list: &[Charge]) -> Vec<Value> {
    let mut numbers = packed.as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes) as i64).skip(1);
    let mut next = || numbers.next().expect("there are more");
    let mut elements = Vec::new();
    for charge in list {
        let signed = next();
        elements.push(i64::from(signed > 0));
        match charge.kind.abs() {
            KIND => elements.extend([signed.abs() - 1, if signed > 0 { 0 } else { next() }]),
            _ => elements.extend([signed.abs(), next(), 0, 0]),
        }
    }
    assert_eq!(numbers.next(), None);
    elements.into_iter().map(Value::Int).collect()
}

fn command(words: &str) -> Cmd {
    let mut words = words.split(' ');
    let mut command = redis::cmd(words.next().expect("a command"));
    words.for_each(|word| {
        command.arg(word);
    });
    command
}
