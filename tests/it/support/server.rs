//! A redis-server on a free port, stopped when the last test that uses it ends.

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
use redis::{AsyncConnectionConfig, Client, FromRedisValue, RedisResult};

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
    /// The login for commands, as `user:password@`, or empty.
    operator: String,
}

impl Server {
    /// The server that tests share, each with its own keys.
    pub(crate) fn shared() -> Arc<Server> {
        static SHARED: Mutex<Weak<Server>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        shared.upgrade().unwrap_or_else(|| {
            let server = Arc::new(Server::start());
            *shared = Arc::downgrade(&server);
            server
        })
    }

    /// A dedicated server, for a test that configures, pauses or kills it.
    pub(crate) fn start() -> Server {
        Server::start_with(&[])
    }

    /// A dedicated server with more arguments, which override the defaults.
    pub(crate) fn start_with(more: &[&str]) -> Server {
        Server::start_by(|port, dir| {
            let more = more.iter().map(|argument| (*argument).to_owned());
            process::plain(port, dir).into_iter().chain(more).collect()
        })
    }

    /// Makes the fixture log in for its commands.
    pub(crate) fn operated_by(mut self, user: &str, password: &str) -> Server {
        self.operator = format!("{user}:{password}@");
        self
    }

    /// A server that also listens on a Unix socket.
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

    /// For a server that may be down.
    pub(crate) async fn try_connect(&self) -> RedisResult<MultiplexedConnection> {
        // The tests overload their servers: a slow reply is not a failure of the fixture.
        let config = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
        let client = Client::open(format!("redis://{}{}", self.operator, self.address()))?;
        client.get_multiplexed_async_connection_with_config(&config).await
    }

    /// Runs one command on a new connection.
    pub(crate) async fn command<T: FromRedisValue>(&self, command: &[&str]) -> T {
        run(&mut self.connect().await, command).await
    }

    /// Returns the number of script calls so far.
    pub(crate) async fn script_calls(&self) -> u64 {
        script_calls(&mut self.connect().await).await
    }

    /// Creates or replaces a user with this password and these ACL rules.
    pub(crate) async fn set_user(&self, user: &str, password: &str, rules: &[&str]) {
        let password = format!(">{password}");
        let user = ["ACL", "SETUSER", user, "reset", "on", &password];
        self.command::<()>(&[&user, rules].concat()).await;
    }

    pub(crate) async fn configure(&self, name: &str, value: &str) {
        self.command::<()>(&["CONFIG", "SET", name, value]).await;
    }

    /// Closes all client connections.
    pub(crate) async fn kill_clients(&self) {
        self.command::<()>(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
    }

    /// Makes this server a replica of the master at `host:port`, or a master.
    pub(crate) async fn replicate(&self, master: Option<&str>) {
        let (host, port) = master.and_then(|master| master.split_once(':')).unwrap_or(("NO", "ONE"));
        self.command::<()>(&["REPLICAOF", host, port]).await;
    }

    /// Kills the process as `kill -9` does: its data is lost, and the system closes its connections.
    pub(crate) fn kill(&self) {
        let mut process = self.process();
        process.kill().and_then(|()| process.wait()).expect("the server is a child process");
    }

    /// Starts the server again, after a kill if it still runs, on the same port and in the same directory.
    pub(crate) async fn restart(&self) {
        self.kill();
        *self.process() = process::spawn(&self.arguments, &self.dir);
        self.paused.store(false, Ordering::SeqCst);
        until("the server starts again", STARTS_WITHIN, async || {
            if process::answers(self.port) { Ok(()) } else { Err(self.log()) }
        })
        .await;
    }

    /// Suspends the process. Its connections stay open, and the system still accepts new ones.
    pub(crate) fn pause(&self) {
        self.signal("-STOP");
        self.paused.store(true, Ordering::SeqCst);
    }

    pub(crate) fn resume(&self) {
        self.signal("-CONT");
        self.paused.store(false, Ordering::SeqCst);
    }

    /// Whether the server is neither killed nor paused.
    pub(crate) fn lives(&self) -> bool {
        !self.paused.load(Ordering::SeqCst) && matches!(self.process().try_wait(), Ok(None))
    }

    fn start_by(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Server {
        let mut log = String::new();
        // Another process may take the free port before the server does.
        for _ in 0..5 {
            match Server::try_start(&arguments) {
                Ok(server) => return server,
                Err(error) => log = error,
            }
        }
        panic!("{} does not start:\n{log}", process::name());
    }

    fn try_start(arguments: impl Fn(u16, &Path) -> Vec<String>) -> Result<Server, String> {
        let port = ports::free();
        let dir = scratch().join(format!("redis-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the target directory is writable");
        let arguments = arguments(port, &dir);
        let process = Mutex::new(process::spawn(&arguments, &dir));
        let server =
            Server { process, paused: AtomicBool::new(false), port, dir, arguments, operator: String::new() };
        let started = Instant::now();
        while started.elapsed() < STARTS_WITHIN {
            let answers = process::answers(port);
            // Checked after the reply, which may come from another server that took the port.
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
        let sent = Command::new("kill").args([signal, &process]).status().expect("kill runs");
        assert!(sent.success(), "kill {signal}: {sent}");
    }

    fn process(&self) -> MutexGuard<'_, Child> {
        self.process.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the server has logged since it started.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.join("log")).unwrap_or_else(|error| error.to_string())
    }
}

/// Returns where servers have their files: in a test cargo's folder for that.
fn scratch() -> PathBuf {
    option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from)
}

/// Runs one command and panics if it fails.
pub(crate) async fn run<T: FromRedisValue>(connection: &mut MultiplexedConnection, command: &[&str]) -> T {
    let reply = redis::cmd(command[0]).arg(&command[1..]).query_async(connection).await;
    reply.unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Returns the number of script calls that the server has counted.
pub(crate) async fn script_calls(connection: &mut MultiplexedConnection) -> u64 {
    let stats: String = run(connection, &["INFO", "commandstats"]).await;
    let calls = |line: &str| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok();
    stats.lines().filter(|line| line.starts_with("cmdstat_eval")).filter_map(calls).sum()
}

impl Drop for Server {
    fn drop(&mut self) {
        let process = self.process.get_mut().unwrap_or_else(PoisonError::into_inner);
        let _ = process.kill();
        let _ = process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}
