//! Other rate limiters under the same traffic, without faults, and ours.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use tokio::process::Command;

use crate::functions::{Algorithm, Numbers};
use crate::log::{self, Admission};
use crate::results::{self, Measured, Row};
use crate::support::server::Server;
use crate::traffic::Bursts;
use crate::verify::verify;
use crate::worker::{Job, LONG_DEADLINE};

/// A rate limiter, its settings, and what its authors promise.
#[derive(Debug)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) settings: &'static str,
    program: Program,
    /// What `ratelimits` promises of such numbers: of every interval.
    any_interval: &'static str,
    /// What the authors promise, as a policy.
    own: &'static str,
    /// Their words, and where they are.
    pub(crate) promise: &'static str,
}

#[derive(Clone, Copy, Debug)]
enum Program {
    /// A program of `peers/rust`.
    Rust,
    /// In `peers`, with what `benches/others` installs.
    Node,
    Python(&'static str),
}

const BUCKET: &str = "rate_limit(\"10/s\", burst = 20)";
const ANY_SECOND: &str = "window_limit(20, \"1s\")";
const OPENED: &str = "count_limit(20, \"1s\")";

pub(crate) const PEERS: [Peer; 8] = [
    Peer {
        name: "governor",
        title: "governor 0.10.4, in process",
        settings: "`RateLimiter::keyed(Quota::per_second(10).allow_burst(20))`",
        program: Program::Rust,
        any_interval: BUCKET,
        own: BUCKET,
        promise: "\"the burst size is the maximum number of cells that the rate limiter will ever allow through without \
                  replenishing them\" (documentation of `Quota`)",
    },
    Peer {
        name: "throttlecrab",
        title: "throttlecrab 0.4.40, redis-cell's algorithm in process",
        settings: "`rate_limit(key, 20, 10, 1, 1, now)`, `AdaptiveStore`, in a `Mutex`",
        program: Program::Rust,
        any_interval: BUCKET,
        own: BUCKET,
        promise: "\"Precise rate limiting: Exact control over request rates\" (README)",
    },
    Peer {
        name: "limitador",
        title: "limitador 0.14.0, in process",
        settings: "`Limit::new(\"peers\", 20, 1, …)`: 20 in 1 s",
        program: Program::Rust,
        any_interval: ANY_SECOND,
        own: OPENED,
        promise: "\"When storing the counters in memory, Limitador guarantees that we'll never go over the limits defined.\" \
                  (documentation of the crate). Counters are of windows that begin with a call",
    },
    Peer {
        name: "tower",
        title: "tower 0.5.3, `RateLimit`, in process",
        settings: "`RateLimit::new(service, Rate::new(20, 1 s))`, one for each key",
        program: Program::Rust,
        any_interval: ANY_SECOND,
        own: OPENED,
        promise: "\"Enforces a rate limit on the number of requests the underlying service can handle over a period of time.\" \
                  (documentation of `RateLimit`). A period begins with a call",
    },
    Peer {
        name: "rate-limiter-flexible",
        title: "rate-limiter-flexible 11.4.0 for Node, two processes on Redis",
        settings: "`RateLimiterRedis({ points: 20, duration: 1 })`",
        program: Program::Node,
        any_interval: ANY_SECOND,
        own: OPENED,
        promise: "\"The Flexible Fixed Window algorithm starts counting from the moment a request is received\" (README)",
    },
    Peer {
        name: "limits-fixed",
        title: "limits 5.8.0 for Python (Flask-Limiter), `FixedWindowRateLimiter`, two processes on Redis",
        settings: "`RateLimitItemPerSecond(20)`",
        program: Program::Python("fixed"),
        any_interval: ANY_SECOND,
        own: OPENED,
        promise: "\"Burst traffic that bypasses the rate limit may occur at window boundaries.\" (README)",
    },
    Peer {
        name: "limits-moving",
        title: "the same, `MovingWindowRateLimiter`",
        settings: "`RateLimitItemPerSecond(20)`",
        program: Program::Python("moving"),
        any_interval: ANY_SECOND,
        own: ANY_SECOND,
        promise: "\"if there are either less than 10 entries or the 10th oldest entry is at least 60 seconds old\" (README)",
    },
    Peer {
        name: "limits-counter",
        title: "the same, `SlidingWindowCounterRateLimiter`",
        settings: "`RateLimitItemPerSecond(20)`",
        program: Program::Python("counter"),
        any_interval: ANY_SECOND,
        own: ANY_SECOND,
        promise: "\"This strategy approximates the moving window\" (README)",
    },
];

/// What is measured beside the peers.
pub(crate) const OURS: [(&str, bool); 2] = [("ours-in-process", false), ("ours-on-redis", true)];

const DURATION: Duration = Duration::from_secs(20);

/// The traffic is the same in each run.
const SEED: u64 = 38;

const PROCESSES: u32 = 2;

/// Runs the peers of these names, or all, and ours.
pub(crate) async fn run(names: &[&str]) -> Result<(), String> {
    let is_named = |name: &str| names.is_empty() || names.contains(&name);
    let mut failed = Vec::new();
    for (name, on_redis) in OURS.into_iter().filter(|(name, _)| is_named(name)) {
        let done = ours(name, on_redis).await.and_then(|measured| measured.keep());
        failed.extend(done.err());
    }
    for peer in PEERS.iter().filter(|peer| is_named(peer.name)) {
        let done = measure(peer).await.and_then(|measured| measured.keep());
        failed.extend(done.err().map(|error| format!("{}: {error}", peer.name)));
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

async fn ours(name: &str, on_redis: bool) -> Result<Measured, String> {
    let server = on_redis.then(Server::start);
    let url = server.as_ref().map_or_else(|| "memory://".to_owned(), Server::url);
    let bursts = Some(Bursts::random(SEED, DURATION));
    let job = Job {
        url,
        algorithms: Algorithm::RATES,
        duration: DURATION,
        bursts,
        instances: PROCESSES,
        deadline: LONG_DEADLINE,
        denies: false,
        numbers: Numbers::Old,
    };
    let mut processes = Vec::new();
    for number in 0..if on_redis { PROCESSES as usize } else { 1 } {
        processes.push(job.start(number, results::folder().join(format!("{name}-{number}.jsonl")))?);
    }
    for process in &mut processes {
        process.ended().await?;
    }
    let logs: Vec<PathBuf> = processes.iter().map(|process| process.log.clone()).collect();
    let all = log::read(&logs)?;
    let mut rows = Vec::new();
    for algorithm in Algorithm::RATES {
        let of_it = all.iter().filter(|admission| admission.limit == algorithm.name()).cloned().collect();
        let policy = algorithm.policy_text(Numbers::Old);
        let refused = processes.iter().map(|process| process.refused(*algorithm)).sum();
        let row = row(&format!("{name}-{}", algorithm.name()), of_it, refused, &policy, None)?;
        rows.push(Row { bound: Some(0), ..row });
    }
    Ok(Measured { line: name.to_owned(), server: "peers".to_owned(), rows })
}

async fn measure(peer: &Peer) -> Result<Measured, String> {
    let bursts = Bursts::random(SEED, DURATION).text();
    let (mut admissions, mut refused) = (Vec::new(), 0);
    let on_redis = !matches!(peer.program, Program::Rust);
    let server = on_redis.then(Server::start);
    let mut processes = Vec::new();
    for number in 0..if on_redis { PROCESSES } else { 1 } {
        let log = results::folder().join(format!("{}-{number}.jsonl", peer.name));
        let port = server.as_ref().map_or_else(String::new, |server| server.port().to_string());
        let mut command = peer.program.command(peer.name, &port)?;
        let spawned = command.arg(&bursts).arg(&log).stdout(Stdio::piped()).kill_on_drop(true).spawn();
        processes.push((spawned.map_err(|error| format!("{command:?}: {error}"))?, log));
    }
    for (process, log) in processes {
        let output = process.wait_with_output().await.map_err(|error| error.to_string())?;
        let printed = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        refused +=
            printed.parse::<u64>().map_err(|_| "it failed; the README says how to install it".to_owned())?;
        admissions.extend(log::read(&[log])?);
    }
    admissions.sort_by_key(|admission| admission.time);
    let row = row(peer.name, admissions, refused, peer.any_interval, Some(peer.own))?;
    Ok(Measured { line: peer.name.to_owned(), server: "peers".to_owned(), rows: vec![row] })
}

fn row(
    name: &str,
    admissions: Vec<Admission>,
    refused: u64,
    policy: &str,
    own: Option<&str>,
) -> Result<Row, String> {
    let path = results::folder().join(format!("{name}.jsonl"));
    log::write(&path, admissions.iter()).map_err(|error| error.to_string())?;
    let slowest = admissions.iter().map(|admission| admission.took).max();
    let clock_error = log::clock_error(slowest.ok_or("no call was admitted")?);
    let found = verify(policy, &path, clock_error, Duration::ZERO)?;
    let own = own.map(|own| {
        Ok::<_, String>((own.to_owned(), verify(own, &path, clock_error, Duration::ZERO)?.excess))
    });
    Ok(Row {
        limiter: name.to_owned(),
        policy: policy.to_owned(),
        admitted: found.admitted,
        refused,
        left_out: 0,
        local: 0,
        clock_error_ms: clock_error.as_millis() as u64,
        excess: found.excess,
        bound: None,
        own: own.transpose()?,
    })
}

impl Program {
    fn command(self, name: &str, port: &str) -> Result<Command, String> {
        let package = Path::new(env!("CARGO_MANIFEST_DIR"));
        let (peers, others) = (package.join("peers"), package.join("../../benches/others"));
        let mut command = match self {
            Program::Rust => {
                let target =
                    std::env::var_os("PEERS_TARGET_DIR").map_or(peers.join("rust/target"), PathBuf::from);
                let mut command = Command::new(target.join("release/over-admission-peers"));
                command.arg(name);
                command
            }
            Program::Node => {
                let mut command = Command::new("node");
                command.env("NODE_PATH", others.join("node_modules"));
                command.arg(peers.join("rate-limiter-flexible.js")).arg(port);
                command
            }
            Program::Python(strategy) => {
                let mut command = Command::new(others.join("venv/bin/python"));
                command.arg(peers.join("limits_async.py")).arg(strategy).arg(port);
                command
            }
        };
        command.stdin(Stdio::null());
        Ok(command)
    }
}
