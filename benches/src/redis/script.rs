//! Scripts that are called without the library: those of textbooks, and our own.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::time::Duration;

use redis::{Cmd, Value, cmd};

use super::load::{Load, Operation, operation};

/// The GCRA as many projects have it. Arguments: the interval between permits, and the capacity, in µs.
const GCRA: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local interval, capacity = tonumber(ARGV[1]), tonumber(ARGV[2])
local tat = tonumber(redis.call('GET', KEYS[1])) or now
if tat < now then tat = now end
local new = tat + interval
local wait = new - capacity - now
if wait > 0 then return {0, 0, wait, tat - now} end
redis.call('SET', KEYS[1], new, 'PX', math.ceil((new - now) / 1000))
return {1, math.floor(-wait / interval), 0, new - now}
";

/// Arguments: the limit, and the period in ms.
const FIXED_WINDOW: &str = "\
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
local limit = tonumber(ARGV[1])
if count > limit then return {0, 0, redis.call('PTTL', KEYS[1])} end
return {1, limit - count, 0}
";

/// Counts of this window and the one before, of which the older counts by how much of it is left: an estimate, where ours
/// is exact. Arguments: the limit, and the period in ms.
const COUNTER: &str = "\
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local limit, period = tonumber(ARGV[1]), tonumber(ARGV[2])
local window = math.floor(now / period)
local counts = redis.call('HMGET', KEYS[1], window, window - 1)
local left = 1 - now % period / period
local used = (tonumber(counts[1]) or 0) + (tonumber(counts[2]) or 0) * left
if used >= limit then return {0, 0, period - now % period} end
if redis.call('HINCRBY', KEYS[1], window, 1) == 1 then
  redis.call('HDEL', KEYS[1], window - 2)
  redis.call('PEXPIRE', KEYS[1], 2 * period)
end
return {1, math.floor(limit - used) - 1, 0}
";

/// Keys end in a number of five digits.
pub(super) const FIRST_KEY: usize = 10_000;

/// An `EVALSHA` with one key: what precedes the key's number, and what follows the key.
#[derive(Clone)]
pub(super) struct Script {
    hash: String,
    key: String,
    /// Some are packed numbers.
    arguments: Vec<Vec<u8>>,
}

impl Script {
    pub(super) fn gcra(load: &Load, name: &str, interval: u64, capacity: u64) -> Self {
        Self::textbook(load, GCRA, &format!("gcra:{name}"), [interval, capacity])
    }

    pub(super) fn fixed_window(load: &Load, limit: u64, period: Duration) -> Self {
        Self::textbook(load, FIXED_WINDOW, "window", [limit, period.as_secs() * 1000])
    }

    pub(super) fn counter(load: &Load, limit: u64, period: Duration) -> Self {
        Self::textbook(load, COUNTER, "counter", [limit, period.as_secs() * 1000])
    }

    /// What the library sends for a decision with the key `FIRST_KEY`, as `MONITOR` shows it. So this stays true when the
    /// script or its arguments change.
    pub(super) fn ours(load: &Load, decision: &Operation) -> Self {
        load.block_on(decision(0)); // loads the script
        let mut stream = TcpStream::connect(load.address()).expect("the server runs");
        stream.write_all(b"MONITOR\r\n").expect("the server reads");
        let mut lines = BufReader::new(stream).lines().map(|line| line.expect("the server writes"));
        lines.next(); // OK
        load.block_on(decision(0));
        let line = lines.find(|line| line.contains("\"EVALSHA\"")).expect("MONITOR shows all commands");
        let mut words = words_of(&line).into_iter().skip(1);
        let mut word = || words.next().expect("EVALSHA has a hash, a number of keys, and a key");
        let mut text = || String::from_utf8(word()).expect("these are texts");
        let (hash, keys, key) = (text(), text(), text());
        let key = key.strip_suffix(&FIRST_KEY.to_string()).map(str::to_owned);
        assert_eq!(keys, "1", "{line}");
        Script {
            hash,
            key: key.unwrap_or_else(|| panic!("no key of ours: {line}")),
            arguments: words.collect(),
        }
    }

    /// Calls the script, and ignores its reply.
    pub(super) fn operation(&self, load: &Load) -> Operation {
        let (script, connection) = (self.clone(), load.connection.clone());
        operation(move |key| {
            let (command, mut connection) = (script.command(key), connection.clone());
            async move {
                let _: Value = command.query_async(&mut connection).await.expect("the script succeeds");
            }
        })
    }

    fn textbook(load: &Load, text: &str, name: &str, arguments: [u64; 2]) -> Self {
        let mut connection = load.connection.clone();
        let hash = load
            .block_on(async { cmd("SCRIPT").arg("LOAD").arg(text).query_async(&mut connection).await })
            .expect("the script is valid");
        let arguments = arguments.map(|argument| argument.to_string().into()).into();
        Script { hash, key: format!("textbook:{name}:user:"), arguments }
    }

    fn command(&self, key: usize) -> Cmd {
        let mut command = cmd("EVALSHA");
        command.arg(&self.hash).arg(1).arg(format!("{}{}", self.key, FIRST_KEY + key)).arg(&self.arguments);
        command
    }
}

/// Returns the words of a command in a line of `MONITOR`, which quotes and escapes them.
fn words_of(line: &str) -> Vec<Vec<u8>> {
    let (mut words, mut bytes) = (Vec::new(), line.bytes());
    // Up to the quote that begins the next word.
    while bytes.any(|byte| byte == b'"') {
        let mut word = Vec::new();
        while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
            word.push(if byte == b'\\' { escaped(&mut bytes) } else { byte });
        }
        words.push(word);
    }
    words
}

/// Returns the byte that is written behind a backslash.
fn escaped(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    match bytes.next().expect("something is escaped") {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'a' => 7,
        b'b' => 8,
        b'x' => {
            let digits: String = bytes.take(2).map(char::from).collect();
            u8::from_str_radix(&digits, 16).expect("two digits follow")
        }
        itself => itself,
    }
}
