//! The network between processes and the server: what becomes of commands and replies.

use std::collections::HashMap;
use std::future::{Future, pending};
use std::io;
use std::pin::Pin;
use std::slice::ChunksExact;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimit_runtime::store::{Dial, Stream};
use tokio::io::{AsyncWriteExt, BufReader, DuplexStream, duplex};
use tokio::time::{Instant, sleep, sleep_until};

use super::process::HOLD_TTL;
use super::server::Server;
use crate::faulty_server::read_command;
use crate::random::Random;

/// More than any command has, so that a client never waits for the network.
const BUFFER: usize = 1 << 20;
/// The longest time that a late message takes.
const LATEST: u64 = 2_000;
/// The bytes of a correction, and the number of holds' algorithm (`lua/correct.lua`).
const CORRECTION: usize = 58;
const HOLDS: u8 = 10;

/// Of a hundred commands, how many do not pass as they should, and how long each takes, in milliseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Network {
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) doubled: u64,
    pub(super) latency: u64,
}

/// What becomes of a command.
enum Passage {
    Usual,
    /// The connection is lost, before or after the command is executed.
    Lost {
        executed: bool,
    },
    /// The command or its reply takes this long, and what follows on the connection waits.
    Late {
        executed: bool,
        delay: Duration,
    },
    /// It is executed once more, so much later.
    Doubled(Duration),
}

/// The connections of a process.
#[derive(Clone)]
pub(super) struct Link(Arc<Shared>);

struct Shared {
    server: Arc<Mutex<Server>>,
    state: Mutex<State>,
}

struct State {
    network: Network,
    random: Random,
    /// Until when nothing passes.
    cut_until: Instant,
    is_dead: bool,
    begun: Instant,
    /// What the server has heard of what is held, by its keys.
    said: HashMap<Vec<u8>, Said>,
}

/// When the server last heard what is held of a key, and the silences before that after which it may have forgotten it.
struct Said {
    heard: Instant,
    silences: Vec<[Instant; 2]>,
}

impl Link {
    pub(super) fn new(server: Arc<Mutex<Server>>, network: Network, random: Random) -> Self {
        let (begun, said) = (Instant::now(), HashMap::new());
        let state = State { network, random, cut_until: begun, is_dead: false, begun, said };
        Link(Arc::new(Shared { server, state: Mutex::new(state) }))
    }

    /// Lets nothing pass until then.
    pub(super) fn cut_until(&self, until: Instant) {
        self.with(|state| state.cut_until = until.max(state.cut_until));
    }

    /// Ends the process: nothing that it sends arrives any more.
    pub(super) fn die(&self) {
        self.with(|state| state.is_dead = true);
    }

    /// Whether the server may have forgotten what the process holds since then of a key of this policy.
    pub(super) fn forgot(&self, (policy, key): (&str, u64), since: Instant) -> bool {
        let (name, end, now) = (format!(":{policy}:"), format!(":{key}"), Instant::now());
        let is_of = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            text.contains(&name) && text.ends_with(&end)
        };
        let is_long = |[from, to]: [Instant; 2]| to >= from.max(since) + HOLD_TTL;
        self.with(|state| match state.said.iter().find(|(text, _)| is_of(text)) {
            None => is_long([since, now]),
            Some((_, said)) => said.silences.iter().copied().chain([[said.heard, now]]).any(is_long),
        })
    }

    /// Ends all faults.
    pub(super) fn mend(&self) {
        self.with(|state| {
            state.network = Network { latency: state.network.latency, ..Network::default() };
            state.cut_until = Instant::now();
        });
    }

    async fn serve(self, stream: DuplexStream) -> io::Result<()> {
        let (read, mut write) = tokio::io::split(stream);
        let mut read = BufReader::new(read);
        while let Some(command) = read_command(&mut read).await? {
            let (passage, latency) = self.with(|state| (state.passage(&command), state.latency()));
            let (before, after) = (latency / 2, latency - latency / 2);
            sleep_some(before).await;
            self.until_mended().await;
            match passage {
                Passage::Lost { executed: false } => return Ok(()),
                Passage::Late { executed: false, delay } => sleep(delay).await,
                _ => {}
            }
            let Some(reply) = self.execute(&command) else { pending().await };
            match passage {
                Passage::Lost { .. } => return Ok(()),
                Passage::Late { executed: true, delay } => sleep(delay).await,
                Passage::Doubled(delay) => {
                    let link = self.clone();
                    tokio::spawn(async move {
                        sleep(delay).await;
                        link.execute(&command)
                    });
                }
                _ => {}
            }
            sleep_some(after).await;
            self.until_mended().await;
            write.write_all(&reply).await?;
        }
        Ok(())
    }

    /// Executes a command unless its process is dead.
    fn execute(&self, command: &[Vec<u8>]) -> Option<Vec<u8>> {
        let is_alive = self.with(|state| {
            keys_of_what_is_held(command).for_each(|key| state.hear(key, Instant::now()));
            !state.is_dead
        });
        is_alive.then(|| self.0.server.lock().unwrap().execute(command))
    }

    async fn until_mended(&self) {
        let until = self.with(|state| state.cut_until);
        if until > Instant::now() {
            sleep_until(until).await;
        }
    }

    fn with<R>(&self, then: impl FnOnce(&mut State) -> R) -> R {
        then(&mut self.0.state.lock().unwrap())
    }
}

impl State {
    fn hear(&mut self, key: &[u8], at: Instant) {
        let silent = || Said { heard: self.begun, silences: Vec::new() };
        let said = self.said.entry(key.to_vec()).or_insert_with(silent);
        if at >= said.heard + HOLD_TTL {
            said.silences.push([said.heard, at]);
        }
        said.heard = at.max(said.heard);
    }

    fn latency(&mut self) -> Duration {
        match self.network.latency {
            0 => Duration::ZERO,
            most => Duration::from_millis(self.random.between(0, most)),
        }
    }

    fn passage(&mut self, command: &[Vec<u8>]) -> Passage {
        let Network { lost, late, doubled, .. } = self.network;
        if lost + late + doubled == 0 || !is_script(command) {
            return Passage::Usual;
        }
        let (chance, executed) = (self.random.below(100), self.random.percent(50));
        let delay = Duration::from_millis(self.random.between(1, LATEST));
        match () {
            () if chance < lost => Passage::Lost { executed },
            () if chance < lost + late => Passage::Late { executed, delay },
            () if chance < lost + late + doubled && may_come_twice(command) => Passage::Doubled(delay),
            () => Passage::Usual,
        }
    }
}

impl Dial for Link {
    fn dial(&self) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + '_>> {
        Box::pin(async {
            let (is_cut, hangs) =
                self.with(|state| (state.cut_until > Instant::now(), state.random.percent(50)));
            match (is_cut, hangs) {
                (true, true) => pending().await,
                (true, false) => Err(io::ErrorKind::ConnectionRefused.into()),
                (false, _) => {
                    let (ours, theirs) = duplex(BUFFER);
                    tokio::spawn(self.clone().serve(theirs));
                    Ok(Box::new(ours) as Box<dyn Stream>)
                }
            }
        })
    }
}

async fn sleep_some(time: Duration) {
    if !time.is_zero() {
        sleep(time).await;
    }
}

fn is_script(command: &[Vec<u8>]) -> bool {
    command[0].starts_with(b"EVAL")
}

/// Returns the keys of which a process says that all it holds is still held: by the second and third operation of holds
/// (`lua/holds.lua`).
fn keys_of_what_is_held(command: &[Vec<u8>]) -> impl Iterator<Item = &[u8]> {
    let says = |one: &[u8]| one[0] == HOLDS && one[2..10] != 1_f64.to_le_bytes();
    let packed = corrections(command).unwrap_or_default().chunks(CORRECTION);
    let mut keys = command.iter().skip(3);
    let of_keys = packed.scan(None, move |key, one| {
        *key = key.or_else(|| keys.next());
        let of_key = (*key)?;
        *key = key.filter(|_| one[1] > 0);
        Some((one, of_key.as_slice()))
    });
    of_keys.filter(move |(one, _)| says(one)).map(|(_, key)| key)
}

/// Whether what a command does is safe against its repetition: decisions only charge more, and what processes say of their holds is
/// numbered. Corrections are sent once, and no network repeats them.
fn may_come_twice(command: &[Vec<u8>]) -> bool {
    corrections(command).is_none_or(|packed| packed.chunks(CORRECTION).all(|one| one[0] == HOLDS))
}

/// Returns the corrections that a command makes.
fn corrections(command: &[Vec<u8>]) -> Option<&[u8]> {
    let keys: usize = std::str::from_utf8(command.get(2)?).ok()?.parse().ok()?;
    let packed = command.get(3 + keys).filter(|_| is_script(command))?;
    let corrections = packed.chunks_exact(CORRECTION);
    // How many more of the same key follow, which is none after the last one of each.
    let ends = |corrections: ChunksExact<'_, u8>| corrections.filter(|one| one[1] == 0).count();
    (corrections.remainder().is_empty() && ends(corrections) == keys).then_some(packed)
}

impl std::fmt::Debug for Link {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Link")
    }
}
