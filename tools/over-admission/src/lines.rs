//! The lines of the report: real processes on real servers, and a fault meanwhile.

mod bounds;
mod clock;
mod fleet;

use std::time::Duration;

use tokio::time::sleep;

use crate::functions::{Algorithm, Numbers};
use crate::log::{self, Admission};
use crate::results::{self, Measured, Row};
use crate::support::proxy::{Fault as NetworkFault, Proxy};
use crate::support::server::Server;
use crate::support::server::cluster::Cluster;
use crate::support::server::sentinels::Sentinels;
use crate::verify::verify;
use crate::worker::{DEADLINE, Job, LONG_DEADLINE};
use bounds::bound;
use fleet::Fleet;

/// A line of the report.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: &'static str,
    pub(crate) store: &'static str,
    pub(crate) fault: Fault,
    pub(crate) text: &'static str,
}

/// What happens while the processes call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// One of the policies has a permit too many, which the check has to find.
    Planted,
    Kill,
    Stop,
    StopWithDeny,
    Restart,
    Partition,
    Flush,
    ClockForward,
    ClockBack,
    Deploy,
    Failover,
    SlotMove,
}

impl Fault {
    /// Whether servers do not answer for a while.
    fn is_outage(self) -> bool {
        matches!(
            self,
            Fault::Stop | Fault::StopWithDeny | Fault::Restart | Fault::Partition | Fault::Failover
        )
    }
}

const fn line(name: &'static str, store: &'static str, fault: Fault, text: &'static str) -> Line {
    Line { name, store, fault, text }
}

pub(crate) const LINES: [Line; 16] = [
    line("none", "one server", Fault::None, "none"),
    line("kill", "one server", Fault::Kill, "`kill -9` of a process, and another one in its place"),
    line("stop", "one server", Fault::Stop, "`SIGSTOP` of the server for 2 s"),
    line("stop-deny", "one server", Fault::StopWithDeny, "the same with `on_store_error = deny`"),
    line(
        "restart",
        "one server",
        Fault::Restart,
        "`kill -9` of the server without persistence, and a start 1 s later",
    ),
    line("partition", "one server", Fault::Partition, "packets of one of two processes are dropped for 2 s"),
    line("flush", "one server", Fault::Flush, "`FLUSHALL`"),
    line("clock-forward", "one server", Fault::ClockForward, "the server's clock steps 10 s forward"),
    line("clock-back", "one server", Fault::ClockBack, "the server's clock steps 10 s back"),
    line(
        "deploy",
        "one server",
        Fault::Deploy,
        "a rolling deploy with twice the numbers: 2 s with both releases",
    ),
    line("sentinel-none", "Sentinel", Fault::None, "none"),
    line("sentinel-failover", "Sentinel", Fault::Failover, "`kill -9` of the master, and a failover"),
    line("cluster-none", "Cluster", Fault::None, "none"),
    line("cluster-move", "Cluster", Fault::SlotMove, "the slots of all keys move to another master"),
    line("cluster-failover", "Cluster", Fault::Failover, "`kill -9` of a master, and a failover"),
    line("planted", "one server", Fault::Planted, "a control: policies with one permit too many"),
];

/// Until the fault begins, and until it ends.
const BEFORE: Duration = Duration::from_secs(3);
const FAULT: Duration = Duration::from_secs(2);

/// How long the processes call in all.
const DURATION: Duration = Duration::from_secs(8);

/// The same where other servers have to take over.
const FAILOVER_DURATION: Duration = Duration::from_secs(14);

const PROCESSES: u32 = 2;

pub(crate) fn list() {
    LINES.iter().for_each(|line| println!("{:18} {}: {}", line.name, line.store, line.text));
}

/// Runs the lines of these names, or all. A line that cannot be run here is said.
pub(crate) async fn run(names: &[&str]) -> Result<(), String> {
    if let Some(unknown) =
        names.iter().find(|name| **name != "all" && LINES.iter().all(|line| line.name != **name))
    {
        return Err(format!("no line {unknown}: `over-admission list` lists all"));
    }
    let mut failed = Vec::new();
    for line in LINES.iter().filter(|line| names.contains(&"all") || names.contains(&line.name)) {
        if matches!(line.fault, Fault::ClockForward | Fault::ClockBack) && clock::file().is_none() {
            println!("{}: not run here: see the README about servers with a shifted clock", line.name);
            continue;
        }
        let done = measure(line).await.and_then(|measured| {
            measured.keep()?;
            let is_found = line.fault != Fault::Planted || measured.rows.iter().all(|row| row.excess == 1);
            if is_found { Ok(()) } else { Err(format!("{}: the permit too many was not found", line.name)) }
        });
        failed.extend(done.err());
    }
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\n")) }
}

async fn measure(line: &Line) -> Result<Measured, String> {
    let mut fleet = Fleet::new(line.name);
    let server = match line.store {
        "Sentinel" => on_sentinels(line.fault, &mut fleet).await?,
        "Cluster" => on_cluster(line.fault, &mut fleet).await?,
        _ => on_server(line.fault, &mut fleet).await?,
    };
    let admissions = log::read(&fleet.logs())?;
    let rows = Algorithm::ALL.map(|algorithm| row(line, algorithm, &admissions, fleet.refused(algorithm)));
    let rows = rows.into_iter().collect::<Result<_, _>>()?;
    Ok(Measured { line: line.name.to_owned(), server, rows })
}

/// Checks the calls of one algorithm.
fn row(line: &Line, algorithm: Algorithm, all: &[Admission], refused: u64) -> Result<Row, String> {
    let admissions: Vec<&Admission> =
        all.iter().filter(|admission| admission.limit == algorithm.name()).collect();
    let path = results::folder().join(format!("{}-{}.jsonl", line.name, algorithm.name()));
    log::write(&path, admissions.iter().copied()).map_err(|error| error.to_string())?;
    let slowest = admissions.iter().map(|admission| admission.took).max();
    let clock_error =
        log::clock_error(slowest.ok_or_else(|| format!("{}: no call was admitted", line.name))?);
    let numbers = if line.fault == Fault::Deploy { Numbers::New } else { Numbers::Old };
    let policy = algorithm.policy_text(numbers);
    let found = verify(&policy, &path, clock_error, Duration::ZERO)?;
    Ok(Row {
        limiter: algorithm.name().to_owned(),
        policy,
        admitted: found.admitted,
        refused,
        left_out: 0,
        local: admissions.iter().filter(|admission| admission.by == "local").count() as u64,
        clock_error_ms: clock_error.as_millis() as u64,
        excess: found.excess,
        bound: Some(bound(line.fault, algorithm, &admissions)),
        own: None,
    })
}

fn job(fault: Fault, url: String) -> Job {
    let deadline = if fault.is_outage() { DEADLINE } else { LONG_DEADLINE };
    Job {
        url,
        algorithms: &Algorithm::ALL,
        duration: DURATION,
        bursts: None,
        instances: PROCESSES,
        deadline,
        denies: false,
        numbers: Numbers::Old,
    }
}

/// Returns what the server is.
async fn on_server(fault: Fault, fleet: &mut Fleet) -> Result<String, String> {
    let server = Server::start();
    let name = name_of(&server).await;
    let job = Job { denies: fault == Fault::StopWithDeny, ..job(fault, server.url()) };
    match fault {
        Fault::Partition => {
            let proxy = Proxy::to(server.address()).await;
            fleet.start(&job)?;
            fleet.start(&Job { url: proxy.url(), ..job })?;
            sleep(BEFORE).await;
            proxy.set(NetworkFault::BlackHole);
            sleep(FAULT).await;
            proxy.set(NetworkFault::Pass);
            fleet.ended().await?;
        }
        Fault::Deploy => {
            let old = Job { duration: BEFORE + FAULT, ..job.clone() };
            let new = Job { duration: DURATION - BEFORE, numbers: Numbers::New, ..job };
            fleet.start_all(&old)?;
            sleep(BEFORE).await;
            fleet.start_all(&new)?;
            fleet.ended().await?;
        }
        Fault::Kill => {
            fleet.start_all(&job)?;
            sleep(BEFORE).await;
            fleet.kill_first().await?;
            fleet.start(&Job { duration: DURATION - BEFORE, ..job })?;
            fleet.ended().await?;
        }
        Fault::Planted => {
            fleet.start_all(&Job { numbers: Numbers::Planted, ..job })?;
            fleet.ended().await?;
        }
        _ => {
            fleet.start_all(&job)?;
            sleep(BEFORE).await;
            inject(fault, &server).await?;
            fleet.ended().await?;
        }
    }
    Ok(name)
}

/// Does to a server what takes a while.
async fn inject(fault: Fault, server: &Server) -> Result<(), String> {
    match fault {
        Fault::Stop | Fault::StopWithDeny => {
            server.pause();
            sleep(FAULT).await;
            server.resume();
        }
        Fault::Restart => {
            server.kill();
            sleep(FAULT / 2).await;
            server.restart().await;
        }
        Fault::Flush => server.command::<()>(&["FLUSHALL"]).await,
        Fault::ClockForward => clock::step(server, "+10").await?,
        Fault::ClockBack => clock::step(server, "-10").await?,
        _ => {}
    }
    Ok(())
}

async fn on_sentinels(fault: Fault, fleet: &mut Fleet) -> Result<String, String> {
    let sentinels = Sentinels::start().await;
    let master = sentinels.master().await;
    let name = name_of(master).await;
    let duration = if fault == Fault::None { DURATION } else { FAILOVER_DURATION };
    fleet.start_all(&Job { duration, ..job(fault, sentinels.url()) })?;
    sleep(BEFORE).await;
    if fault == Fault::Failover {
        master.kill();
        sentinels.master_after(master).await;
    }
    fleet.ended().await?;
    Ok(name)
}

async fn on_cluster(fault: Fault, fleet: &mut Fleet) -> Result<String, String> {
    let cluster = if fault == Fault::Failover {
        Cluster::start_with_quick_failover().await
    } else {
        Cluster::start().await
    };
    let name = name_of(&cluster.nodes()[0]).await;
    let duration = if fault == Fault::None { DURATION } else { FAILOVER_DURATION };
    fleet.start_all(&Job { duration, ..job(fault, cluster.url()) })?;
    sleep(BEFORE).await;
    let mut keys = Vec::new();
    for master in cluster.masters().await {
        keys.extend(master.node.command::<Vec<String>>(&["KEYS", "*:bucket:*"]).await);
    }
    match fault {
        Fault::Failover => {
            let key = keys.first().ok_or("the functions have no key")?;
            cluster.master_of(key).await.kill();
        }
        Fault::SlotMove => {
            for key in &keys {
                let migration = cluster.migrate(key).await;
                while migration.move_keys(1).await > 0 {
                    sleep(Duration::from_millis(20)).await;
                }
                migration.finish().await;
            }
        }
        _ => {}
    }
    fleet.ended().await?;
    Ok(name)
}

/// Returns the name and version of a server.
async fn name_of(server: &Server) -> String {
    let info: String = server.command(&["INFO", "server"]).await;
    let field = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    match field("valkey_version") {
        Some(version) => format!("Valkey {}", version.trim()),
        None => format!("Redis {}", field("redis_version").unwrap_or("of no version").trim()),
    }
}
