//! A redis-server of the tests' own, on a free port, gone with the last test that uses it.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

const STARTS_WITHIN: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(crate) struct Server {
    process: Child,
    port: u16,
    dir: PathBuf,
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
        let binary = std::env::var("REDIS_SERVER_BIN").unwrap_or_else(|_| "redis-server".into());
        let version = version(&binary);
        // Another process may take the free port before the server does.
        for _ in 0..5 {
            if let Some(server) = Server::try_start(&binary, version) {
                return server;
            }
        }
        panic!("{binary} does not start");
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    pub(crate) async fn connect(&self) -> redis::aio::MultiplexedConnection {
        let client = redis::Client::open(self.url()).expect("the URL is right");
        // The tests bring a server to its limits: an answer that takes long is no failure of theirs.
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(30)));
        client.get_multiplexed_async_connection_with_config(&config).await.expect("the server answers")
    }

    fn try_start(binary: &str, version: u32) -> Option<Server> {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = free.expect("a port is free").port();
        let dir =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("redis-{}-{port}", std::process::id()));
        std::fs::create_dir_all(&dir).expect("the target directory can be written");
        let mut command = Command::new(binary);
        command.args([
            "--port",
            &port.to_string(),
            "--bind",
            "127.0.0.1",
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command.arg("--dir").arg(&dir);
        if version >= 7 {
            command.args(["--enable-debug-command", "yes"]);
        }
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("it told its version");
        let mut server = Server { process, port, dir };
        let started = Instant::now();
        while started.elapsed() < STARTS_WITHIN {
            if server.answers() {
                return Some(server);
            }
            if let Ok(Some(_)) = server.process.try_wait() {
                return None;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        None
    }

    fn answers(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else { return false };
        let mut answer = [0; 5];
        stream.write_all(b"PING\r\n").is_ok() && stream.read_exact(&mut answer).is_ok() && &answer == b"+PONG"
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// The major version, from a line like `Redis server v=7.0.15 sha=…`.
fn version(binary: &str) -> u32 {
    let output = match Command::new(binary).arg("--version").output() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            panic!("redis-server is not installed: run ./test.sh, which installs it, or set REDIS_SERVER_BIN")
        }
        output => output.expect("redis-server can be run"),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    text.split("v=").nth(1).and_then(|rest| rest.split('.').next()?.parse().ok()).unwrap_or(0)
}
