//! A real Redis, with a clock of the simulation: it decides at once and takes no simulated time.

use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::Instant;

/// When the simulated time begins, by the server's clock.
const EPOCH: u64 = 1_701_385_190_000_000;
/// How long before December, in Berlin.
pub(super) const MIDNIGHT: u64 = 10_000_000;
const SNAPSHOTS: u64 = 15;

/// The time of a script. Keys end by this time, too.
const NOW: &str = "(function()
  local now = tonumber(call('GET', 'clock'))
  for _, key in ipairs(call('ZRANGEBYSCORE', 'ends', '-inf', string.format('(%.6f', now / 1000000))) do
    call('DEL', key)
    call('ZREM', 'ends', key)
  end
  return now
end)()";
const EXPIRE: &str = "call('ZADD', 'ends', second, key)";
const COPY: &str = "redis.call('SELECT', ARGV[2])
redis.call('FLUSHDB')
redis.call('SELECT', ARGV[1])
for _, key in ipairs(redis.call('KEYS', '*')) do redis.call('COPY', key, key, 'DB', ARGV[2]) end
return 1";

/// A script as the library sends it, by the hash of that, with the clock of the simulation.
struct Script {
    original: Vec<u8>,
    /// Its hash and source, and those without its pass over plain states.
    forms: [(String, String); 2],
}

pub(super) struct Server {
    process: Child,
    dir: PathBuf,
    connection: BufReader<UnixStream>,
    scripts: HashMap<Vec<u8>, Script>,
    /// Whether scripts leave out their pass over plain states.
    decides_in_full: bool,
    /// The scripts that the simulated server knows.
    known: HashSet<Vec<u8>>,
    begun: Instant,
    /// By how much the clock was stepped, in microseconds.
    stepped: i64,
    snapshots: u64,
}

impl Server {
    pub(super) fn start() -> Self {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let number = STARTED.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("ratelimits-simulation-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the directory for temporary files is writable");
        let program = std::env::var("REDIS_SERVER_BIN").unwrap_or_else(|_| "redis-server".into());
        let process = Command::new(program)
            .args(["--port", "0", "--unixsocket", "socket", "--save", "", "--appendonly", "no", "--dir"])
            .arg(&dir)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server is installed, or REDIS_SERVER_BIN says where it is");
        let connection = loop {
            match UnixStream::connect(dir.join("socket")) {
                Ok(stream) => break BufReader::new(stream),
                Err(error) if [ErrorKind::NotFound, ErrorKind::ConnectionRefused].contains(&error.kind()) => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                Err(error) => panic!("{}: {error}", dir.display()),
            }
        };
        let (scripts, known) = (HashMap::new(), HashSet::new());
        let begun = Instant::now();
        let mut server = Server {
            process,
            dir,
            connection,
            scripts,
            decides_in_full: false,
            known,
            begun,
            stepped: 0,
            snapshots: 0,
        };
        for script in
            [ratelimit_lua::decide(None), ratelimit_lua::decide(Some("gcra")), ratelimit_lua::correct()]
        {
            server.learn(script.as_bytes());
        }
        server
    }

    /// Begins a schedule: there is no data, and its time is 0.
    pub(super) fn clear(&mut self, forgets_scripts: bool, decides_in_full: bool) {
        self.decides_in_full = decides_in_full;
        self.known = if forgets_scripts { HashSet::new() } else { self.scripts.keys().cloned().collect() };
        (self.begun, self.stepped, self.snapshots) = (Instant::now(), 0, 0);
        self.lose_data();
    }

    /// Steps the clock by microseconds.
    pub(super) fn step_clock(&mut self, by: i64) {
        self.stepped += by;
    }

    /// Returns the time by its clock, in microseconds.
    pub(super) fn now(&self) -> u64 {
        let passed = self.begun.elapsed().as_micros() as u64;
        (EPOCH + passed).saturating_add_signed(self.stepped)
    }

    pub(super) fn lose_data(&mut self) {
        self.request(&[b"FLUSHDB"]);
    }

    /// Keeps a copy of all data for [`fail_over`](Self::fail_over).
    pub(super) fn keep_snapshot(&mut self) {
        self.snapshots += 1;
        let number = (self.snapshots - 1) % SNAPSHOTS + 1;
        self.copy(0, number);
    }

    /// Returns to the copy at this index from the latest, as the last replica that was reached has it.
    pub(super) fn fail_over(&mut self, age: u64) {
        match self.snapshots.saturating_sub(age) {
            0 => self.lose_data(),
            number => self.copy((number - 1) % SNAPSHOTS + 1, 0),
        }
    }

    /// Executes a command, and returns the reply as it is sent.
    pub(super) fn execute(&mut self, command: &[Vec<u8>]) -> Vec<u8> {
        let name = String::from_utf8_lossy(&command[0]).to_uppercase();
        match &*name {
            "HELLO" => b"%1\r\n$5\r\nproto\r\n:3\r\n".to_vec(),
            "PING" => b"+PONG\r\n".to_vec(),
            "CLIENT" => b"+OK\r\n".to_vec(),
            "INFO" => b"-NOPERM no\r\n".to_vec(),
            "EVALSHA" if self.known.contains(&command[1]) => self.run(&command[1], &command[2..]),
            "EVALSHA" => b"-NOSCRIPT unknown\r\n".to_vec(),
            "EVAL" => {
                let hash = self.learn(&command[1]);
                self.known.insert(hash.clone());
                self.run(&hash, &command[2..])
            }
            "DEL" => self.request(&command.iter().map(Vec::as_slice).collect::<Vec<_>>()),
            _ => panic!("the library sent {name}"),
        }
    }

    /// Returns the hash of a script.
    fn learn(&mut self, original: &[u8]) -> Vec<u8> {
        let known = self.scripts.iter().find(|(_, script)| script.original == original);
        if let Some((hash, _)) = known {
            return hash.clone();
        }
        let source = std::str::from_utf8(original).expect("scripts are text");
        let key = redis::Script::new(source).get_hash().as_bytes().to_vec();
        let forms = [source.to_owned(), ratelimit_lua::without_first_pass(source)].map(|source| {
            let source = ratelimit_lua::with_time(&source, NOW, EXPIRE);
            (redis::Script::new(&source).get_hash().to_owned(), source)
        });
        self.scripts.insert(key.clone(), Script { original: original.to_vec(), forms });
        key
    }

    fn run(&mut self, hash: &[u8], rest: &[Vec<u8>]) -> Vec<u8> {
        let time = self.now().to_string();
        let (hash, source) = &self.scripts[hash].forms[usize::from(self.decides_in_full)];
        let arguments: Vec<&[u8]> = rest.iter().map(Vec::as_slice).collect();
        let mut sent = packed(&[b"SET", b"clock", time.as_bytes()]);
        sent.extend(packed(&[&[b"EVALSHA", hash.as_bytes()], &*arguments].concat()));
        let in_full = packed(&[&[b"EVAL", source.as_bytes()], &*arguments].concat());
        self.send(&sent);
        self.receive();
        let reply = self.receive();
        if !reply.starts_with(b"-NOSCRIPT") {
            return reply;
        }
        self.send(&in_full);
        self.receive()
    }

    fn copy(&mut self, from: u64, to: u64) {
        let (from, to) = (from.to_string(), to.to_string());
        let reply = self.request(&[b"EVAL", COPY.as_bytes(), b"0", from.as_bytes(), to.as_bytes()]);
        assert_eq!(reply, b":1\r\n", "{}", String::from_utf8_lossy(&reply));
    }

    fn request(&mut self, command: &[&[u8]]) -> Vec<u8> {
        self.send(&packed(command));
        self.receive()
    }

    fn send(&mut self, bytes: &[u8]) {
        self.connection.get_mut().write_all(bytes).expect("the server runs");
    }

    /// Reads a reply without what it says.
    fn receive(&mut self) -> Vec<u8> {
        let (mut reply, mut left) = (Vec::new(), 1);
        while left > 0 {
            let begin = reply.len();
            self.connection.read_until(b'\n', &mut reply).expect("the server runs");
            let line = std::str::from_utf8(&reply[begin..]).expect("a line of a reply").trim_end();
            let (kind, size) = line.split_at_checked(1).expect("the server runs");
            left -= 1;
            match (kind, size.parse::<usize>()) {
                ("$", Ok(size)) => {
                    let begin = reply.len();
                    reply.resize(begin + size + 2, 0);
                    self.connection.read_exact(&mut reply[begin..]).expect("the server runs");
                }
                ("*", Ok(size)) => left += size,
                _ => {}
            }
        }
        reply
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn packed(command: &[&[u8]]) -> Vec<u8> {
    let mut packed = format!("*{}\r\n", command.len()).into_bytes();
    for part in command {
        packed.extend(format!("${}\r\n", part.len()).into_bytes());
        packed.extend_from_slice(part);
        packed.extend(b"\r\n");
    }
    packed
}
