//! A redis-server of the tests' own, on a free port, gone with the last test that uses it.

pub(crate) mod cluster;
pub(crate) mod ports;
mod process;
mod replication;
pub(crate) mod sentinels;
pub(crate) mod tls;

use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

use super::until::until;

const STARTS_WITHIN: Duration = Duration::from_secs(20);
const SOCKET: &str = "redis.sock";

#[derive(Debug)]
pub(crate) struct Server {
    process: Mutex<Child>,
    paused: AtomicBool,
    port: u16,
    dir: PathBuf,
    arguments: Vec<String>,
}

impl Server {
    /// The server that tests share. Their keys tell them apart.
    pub(crate) fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// A server of one's own, for a test that configures, stops or kills it.
    pub(crate) fn start() -> Server {
        Server::start_with(&[])
    }

    /// A server of one's own with more arguments, which win over the usual ones.
    pub(crate) fn start_with(more: &[&str]) -> Server {
        Server::start_by(|port, dir| {
            let more = more.iter().map(|argument| (*argument).to_owned());
            process::plain(port, dir).into_iter().chain(more).collect()
        })
    }

    /// A server that listens on a Unix socket too.
    pub(crate) fn start_with_socket() -> Server {
        Server::start_with(&["--unixsocket", SOCKET])
    }

    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn url_as(&self, user: &str, password: &str) -> String {
        format!("redis://{user}:{password}@{}", self.address())
    }

    pub(crate) fn socket_url(&self) -> String {
        format!("redis+unix://{}", self.dir.join(SOCKET).display())
    }

    pub(crate) async fn connect(&self) -> MultiplexedConnection {
        self.try_connect().await.expect("the server answers")
    }

    /// For a server that is in trouble.
    pub(crate) async fn try_connect(&self) -> RedisResult<MultiplexedConnection> {
        // The tests bring a server to its limits: an answer that takes long is no failure of theirs.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
        Client::open(self.url())?.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Makes a user of this password and these specs, or gives it other ones.
    pub(crate) async fn set_user(&self, user: &str, password: &str, specs: &[&str]) {
        let mut command = redis::cmd("ACL");
        command.arg(&["SETUSER", user, "reset", "on"]).arg(format!(">{password}")).arg(specs);
        let set: Result<(), _> = command.query_async(&mut self.connect().await).await;
        set.expect("the specs are right");
    }

    /// As with `kill -9`: what it holds is lost, and its connections are closed by the system.
    pub(crate) fn kill(&self) {
        let mut process = self.process();
        process.kill().and_then(|()| process.wait()).expect("it is a child of ours");
    }

    /// Starts it again, if need be after a kill, on the same port and in the same directory.
    pub(crate) async fn restart(&self) {
        self.kill();
        *self.process() = process::spawn(&self.arguments, &self.dir);
        self.paused.store(false, Ordering::SeqCst);
        until("the server starts again", STARTS_WITHIN, async || {
            if process::answers(self.port) { Ok(()) } else { Err(self.log()) }
        })
        .await;
    }

    /// Stops it where it is. Its connections stay open, and the system even takes new ones for it.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
        self.paused.store(true, Ordering::SeqCst);
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
        self.paused.store(false, Ordering::SeqCst);
    }

    /// It has neither been killed nor paused.
    pub(crate) fn lives(&self) -> bool {
        !self.paused.load(Ordering::SeqCst) && matches!(self.process().try_wait(), Ok(None))
    }

    fn start_by(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Server {
        let mut seen = String::new();
        // Another process may take the free port before the server does.
        for _ in 0..5 {
            match Server::try_start(&arguments) {
                Ok(server) => return server,
                Err(log) => seen = log,
            }
        }
        panic!("{} does not start:\n{seen}", process::name());
    }

    fn try_start(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Result<Server, String> {
        let port = ports::free();
        let dir =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the target directory can be written");
        let arguments = arguments(port, &dir);
        let process = Mutex::new(process::spawn(&arguments, &dir));
        let server = Server { process, paused: AtomicBool::new(false), port, dir, arguments };
        let started = Instant::now();
        while started.elapsed() < STARTS_WITHIN {
            let answers = process::answers(port);
            // Asked after the answer, which may be that of a server that took the port.
            if let Ok(Some(_)) = server.process().try_wait() {
                break;
            }
            if answers {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Err(server.log())
    }

    fn signal(&self, signal: &str) {
        let process = self.process().id().to_string();
        let sent = Command::new("kill").args([signal, &process]).status().expect("kill can be run");
        assert!(sent.success(), "kill {signal}: {sent}");
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What it has told since it started.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_else(|error| error.to_string())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
