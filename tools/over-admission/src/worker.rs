//! A process whose tasks call the limited functions as often as they can, and log what was admitted.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{OnStoreError, Registry, install};
use tokio::process::{Child, Command};

use crate::functions::{self, Admitted, Algorithm, Numbers};
use crate::log::Admission;
use crate::traffic::{Bursts, Random};

/// Few, so that all processes call each of them at once.
const KEYS: u64 = 4;

/// For each rate limit, and for the concurrency limit: more than it lets run, so that there are always calls that would.
const TASKS: u64 = 3;
const HOLD_TASKS: u64 = 12;

/// A call that holds a permit runs for less than this, in milliseconds. That is longer than the deadline, so that there are calls of before
/// an outage that run when the first ones are decided in process.
const RUNS: u64 = 250;

/// The default, and one at which a busy machine is no outage.
pub(crate) const DEADLINE: Duration = Duration::from_millis(100);
pub(crate) const LONG_DEADLINE: Duration = Duration::from_secs(2);

/// Between a refusal and the next call of the task, so that the machine has time for the server.
const PAUSE: Duration = Duration::from_millis(1);

/// What a process does.
#[derive(Clone, Debug)]
pub(crate) struct Job {
    pub(crate) url: String,
    pub(crate) algorithms: &'static [Algorithm],
    /// When it calls: for so long from its start on, or in bursts.
    pub(crate) duration: Duration,
    pub(crate) bursts: Option<Bursts>,
    /// The number of processes that share the policies.
    pub(crate) instances: u32,
    /// The deadline of a call to Redis.
    pub(crate) deadline: Duration,
    /// Whether calls are refused, rather than decided in process, while the store fails.
    pub(crate) denies: bool,
    pub(crate) numbers: Numbers,
}

/// A process that was started. It is killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Process {
    pub(crate) child: Child,
    pub(crate) log: PathBuf,
}

impl Process {
    /// Waits until it ends.
    pub(crate) async fn ended(&mut self) -> Result<(), String> {
        let status = self.child.wait().await.map_err(|error| error.to_string())?;
        if status.success() { Ok(()) } else { Err(format!("a process ended with {status}")) }
    }

    /// Returns how many calls of an algorithm it has refused, up to a tenth of a second before it was killed.
    pub(crate) fn refused(&self, algorithm: Algorithm) -> u64 {
        let text = std::fs::read_to_string(counts(&self.log)).unwrap_or_default();
        text.split(' ').nth(algorithm as usize).and_then(|count| count.parse().ok()).unwrap_or(0)
    }
}

impl Job {
    /// Starts the process with this number.
    pub(crate) fn start(&self, number: usize, log: PathBuf) -> Result<Process, String> {
        let program = std::env::current_exe().map_err(|error| error.to_string())?;
        for file in [&log, &counts(&log)] {
            File::create(file).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        let bursts = self.bursts.clone().unwrap_or_else(|| Bursts::one(self.duration));
        let deadline = self.deadline.as_millis().to_string();
        let (instances, denies) = (self.instances.to_string(), self.denies.to_string());
        let algorithms: Vec<&str> = self.algorithms.iter().map(|algorithm| algorithm.name()).collect();
        let numbers = [algorithms.join(","), number.to_string(), bursts.text(), deadline, instances, denies];
        let mut command = Command::new(program);
        command.args(["worker", &self.url, self.numbers.name()]).args(numbers).arg(&log).kill_on_drop(true);
        let child = command.spawn().map_err(|error| error.to_string())?;
        Ok(Process { child, log })
    }
}

/// The process itself.
pub(crate) async fn run(arguments: &[&str]) -> Result<(), String> {
    let [url, numbers, algorithms, number, bursts, deadline, instances, denies, log] = arguments else {
        return Err("a worker is started by this program only".to_owned());
    };
    let wrong = |argument: &str| format!("wrong argument of a worker: {argument}");
    let number: u64 = number.parse().map_err(|_| wrong(number))?;
    let numbers = Numbers::find(numbers).ok_or_else(|| wrong(numbers))?;
    let algorithms: Option<Vec<_>> = algorithms.split(',').map(Algorithm::find).collect();
    let algorithms = algorithms.ok_or_else(|| wrong("its algorithms"))?;
    let bursts = Bursts::parse(bursts).ok_or_else(|| wrong(bursts))?;
    let on_store_error = if *denies == "true" { OnStoreError::Deny } else { OnStoreError::Local };
    let registry = Registry::builder()
        .instances(instances.parse().map_err(|_| wrong(instances))?)
        .deadline(Duration::from_millis(deadline.parse().map_err(|_| wrong(deadline))?))
        .on_store_error(on_store_error)
        .connect(url)
        .await
        .map_err(|error| error.to_string())?;
    install(registry.clone()).map_err(|error| error.to_string())?;

    let file = File::options().append(true).open(log).map_err(|error| error.to_string())?;
    let shared = Arc::new(Shared { registry, numbers, number, bursts, file, refused: Default::default() });
    let mut tasks = tokio::task::JoinSet::new();
    for algorithm in algorithms {
        for task in 0..if algorithm == Algorithm::Holds { HOLD_TASKS } else { TASKS } {
            let random = Random::new(100 * number + task);
            tasks.spawn(Arc::clone(&shared).call(algorithm, random));
        }
    }
    while shared.bursts.wait().is_some() {
        shared.write_counts(Path::new(log));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    while let Some(ended) = tasks.join_next().await {
        ended.map_err(|error| error.to_string())??;
    }
    shared.write_counts(Path::new(log));
    Ok(())
}

struct Shared {
    registry: Registry,
    numbers: Numbers,
    number: u64,
    bursts: Bursts,
    file: File,
    /// Of each algorithm.
    refused: [AtomicU64; Algorithm::ALL.len()],
}

impl Shared {
    async fn call(self: Arc<Self>, algorithm: Algorithm, mut random: Random) -> Result<(), String> {
        let limiter = algorithm.limiter(&self.registry, self.numbers).map_err(|error| error.to_string())?;
        while let Some(wait) = self.bursts.wait() {
            if !wait.is_zero() {
                tokio::time::sleep(wait).await;
            }
            let key = format!("key-{}", random.below(KEYS));
            let runs = Duration::from_millis(random.below(RUNS));
            let decided = match self.numbers {
                Numbers::Old => functions::call(algorithm, &key, runs).await,
                _ => functions::acquire(algorithm, &limiter, &key, runs).await,
            };
            let is_refused = decided.is_err();
            match decided {
                Ok(Admitted { by, time, took, held }) => {
                    let (limit, by) = (algorithm.name().to_owned(), by.name().to_owned());
                    let held = held.map(|held| format!("{}.{:09}", held.as_secs(), held.subsec_nanos()));
                    self.log(&Admission { time, took, held, key, limit, by, process: self.number })?;
                }
                Err(_) => _ = self.refused[algorithm as usize].fetch_add(1, Ordering::Relaxed),
            }
            if is_refused || self.bursts.is_paced() {
                tokio::time::sleep(PAUSE).await;
            }
        }
        Ok(())
    }

    /// Writes a line at once, so that it is there even if the process is killed.
    fn log(&self, admission: &Admission) -> Result<(), String> {
        let mut line = serde_json::to_vec(admission).map_err(|error| error.to_string())?;
        line.push(b'\n');
        (&self.file).write_all(&line).map_err(|error| error.to_string())
    }

    fn write_counts(&self, log: &Path) {
        let refused = self.refused.each_ref().map(|count| count.load(Ordering::Relaxed).to_string());
        // If it fails, fewer refusals are counted.
        _ = std::fs::write(counts(log), refused.join(" "));
    }
}

/// The file with the numbers of refused calls.
fn counts(log: &Path) -> PathBuf {
    log.with_extension("counts")
}
