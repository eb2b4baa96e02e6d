//! A Redis server that exists as long as its value.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::machine::pin;

pub(super) struct Server {
    process: Child,
    pub(super) address: SocketAddr,
}

impl Server {
    /// Starts `redis-server`, or the program in `REDIS_SERVER_BIN`, without persistence, on the second processor from the
    /// end: the client has the last one.
    pub(super) fn start() -> Result<Self, String> {
        let program = std::env::var("REDIS_SERVER_BIN").unwrap_or_else(|_| "redis-server".to_owned());
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).and_then(|listener| listener.local_addr());
        let address = free.map_err(|error| format!("no free port: {error}"))?;
        let process = Command::new(&program)
            .args([
                "--port",
                &address.port().to_string(),
                "--bind",
                "127.0.0.1",
                "--save",
                "",
                "--appendonly",
                "no",
            ])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => {
                    format!("{program} is not installed: install it, or set REDIS_SERVER_BIN")
                }
                _ => format!("{program}: {error}"),
            })?;
        pin(Some(process.id()), 1);
        let server = Server { process, address };
        for _ in 0..500 {
            if TcpStream::connect(address).is_ok() {
                return Ok(server);
            }
            thread::sleep(Duration::from_millis(10));
        }
        Err(format!("{program} accepts no connections"))
    }

    pub(super) fn url(&self) -> String {
        format!("redis://{}", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        _ = self.process.kill();
        _ = self.process.wait();
    }
}
