//! Tests that run in several processes: each starts this binary again, for the same test.

use std::fs::File;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use super::server::Server;

const URL: &str = "RATELIMITS_CHILD_URL";
const LOG: &str = "RATELIMITS_CHILD_LOG";

const TIMEOUT: Duration = Duration::from_secs(20);

/// What a child process gets from its parent.
#[derive(Debug)]
pub(crate) struct Child {
    pub(crate) url: String,
    log: PathBuf,
}

impl Child {
    /// Returns `None` in the parent.
    pub(crate) fn from_env() -> Option<Child> {
        Some(Child { url: std::env::var(URL).ok()?, log: std::env::var_os(LOG)?.into() })
    }

    /// Waits until this many processes have called it with this name. Returns how many had done so before this one.
    pub(crate) async fn barrier(&self, name: &str, processes: usize) -> usize {
        let client = redis::Client::open(&*self.url).expect("the URL is valid");
        let mut connection = client.get_multiplexed_async_connection().await.expect("the server responds");
        let (key, start) = (format!("barrier {name}"), Instant::now());
        let place: usize =
            redis::cmd("INCR").arg(&key).query_async(&mut connection).await.expect("the server responds");
        let mut arrived = place;
        while arrived < processes {
            assert!(start.elapsed() < TIMEOUT, "only {arrived} processes arrived");
            tokio::time::sleep(Duration::from_millis(1)).await;
            arrived =
                redis::cmd("GET").arg(&key).query_async(&mut connection).await.expect("the server responds");
        }
        place - 1
    }

    /// Returns a log whose lines the parent gets even if this process is killed.
    pub(crate) fn log(&self) -> File {
        File::options().create(true).append(true).open(&self.log).expect("the log can be written")
    }

    /// Hands the lines to the parent.
    pub(crate) fn report(&self, lines: impl IntoIterator<Item = String>) {
        let text: String = lines.into_iter().map(|line| line + "\n").collect();
        std::fs::write(&self.log, text).expect("the log can be written");
    }
}

/// A child process that the parent has started. Dropped, it is killed.
pub(crate) struct Process {
    child: tokio::process::Child,
    log: PathBuf,
}

impl Process {
    /// Kills it, as a server without memory does.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("the child was started");
    }

    /// Returns its number in the system, while it runs.
    pub(crate) fn id(&self) -> u32 {
        self.child.id().expect("the child runs")
    }

    /// Takes the lines that it has reported.
    pub(crate) fn lines(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).expect("the child has written its log");
        let _ = std::fs::remove_file(&self.log);
        text.lines().map(String::from).collect()
    }
}

/// Runs the test in this many child processes, and returns the lines that each of them reported.
pub(crate) async fn run(server: &Server, processes: usize, module: &str, test: &str) -> Vec<Vec<String>> {
    let mut children = start(server, processes, module, test);
    for process in &mut children {
        assert!(process.child.wait().await.expect("the child was started").success());
    }
    children.iter().map(Process::lines).collect()
}

/// Starts the test in this many child processes.
pub(crate) fn start(server: &Server, processes: usize, module: &str, test: &str) -> Vec<Process> {
    (0..processes).map(|i| start_one(server, i, module, test)).collect()
}

/// Starts the test in a child process, which has a log of this number.
pub(crate) fn start_one(server: &Server, number: usize, module: &str, test: &str) -> Process {
    let (_, module) = module.split_once("::").expect("a module of this binary");
    let dir = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let log = dir.join(format!("{test}-{}-{number}.log", std::process::id()));
    File::create(&log).expect("the log can be written");
    let mut command = tokio::process::Command::new(std::env::current_exe().expect("a path"));
    command
        .args(["--exact", &format!("{module}::{test}"), "--nocapture"])
        .env(URL, server.url())
        .env(LOG, &log);
    let child = command.stdout(Stdio::null()).kill_on_drop(true).spawn().expect("this binary starts");
    Process { child, log }
}
