//! What happens to a Redis.

use std::time::{Duration, SystemTime};

use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;

#[derive(Clone, Copy, Debug)]
pub(super) enum Event {
    Kill,
    Stop,
    FlushScripts,
    KillClients,
    PauseClients,
    Sleep,
    BlackHole,
    Stall,
    Slow,
    TooSlow,
    Reset,
    HalfClose,
    Refuse,
    SwallowNext,
    FillMemory,
    Demote,
}

impl Event {
    pub(super) const ALL: [Event; 16] = [
        Event::Kill,
        Event::Stop,
        Event::FlushScripts,
        Event::KillClients,
        Event::PauseClients,
        Event::Sleep,
        Event::BlackHole,
        Event::Stall,
        Event::Slow,
        Event::TooSlow,
        Event::Reset,
        Event::HalfClose,
        Event::Refuse,
        Event::SwallowNext,
        Event::FillMemory,
        Event::Demote,
    ];
}

/// The server, a proxy before it, and another one that is its master for a while.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    master: Server,
    /// When all was lost that the server had, in microseconds of its clock. Nothing is admitted right before.
    pub(super) losses: Vec<u64>,
}

impl Stage {
    pub(super) async fn set() -> Stage {
        let (server, master) = (Server::start(), Server::start());
        let proxy = Proxy::to(server.address()).await;
        Stage { server, proxy, master, losses: Vec::new() }
    }

    /// All that an event does, and undoes after this time.
    pub(super) async fn play(&mut self, event: Event, time: Duration) {
        let fault = match event {
            Event::Kill => {
                self.server.kill();
                self.loses();
                tokio::time::sleep(time / 4).await;
                return self.server.restart().await;
            }
            Event::Stop => {
                self.server.pause();
                tokio::time::sleep(time).await;
                return self.server.resume();
            }
            Event::FlushScripts => return self.operate(&["SCRIPT", "FLUSH"]).await,
            Event::KillClients => {
                return self.operate(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
            }
            Event::PauseClients => {
                return self.operate(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "ALL"]).await;
            }
            Event::Sleep => return self.operate(&["DEBUG", "SLEEP", &time.as_secs_f64().to_string()]).await,
            Event::Reset => return self.proxy.reset().await,
            Event::HalfClose => return self.proxy.half_close(),
            Event::Refuse => {
                self.proxy.refuse().await;
                self.proxy.reset().await;
                tokio::time::sleep(time).await;
                return self.proxy.listen().await;
            }
            Event::FillMemory => {
                self.operate(&["CONFIG", "SET", "maxmemory", "1"]).await;
                tokio::time::sleep(time).await;
                return self.operate(&["CONFIG", "SET", "maxmemory", "0"]).await;
            }
            Event::Demote => return self.demote(time).await,
            Event::BlackHole => Fault::BlackHole,
            Event::Stall => Fault::Stall,
            Event::Slow => Fault::Latency(Duration::from_millis(15)),
            Event::TooSlow => Fault::Latency(Duration::from_millis(80)),
            Event::SwallowNext => Fault::SwallowNextThenReset,
        };
        self.proxy.set(fault);
        tokio::time::sleep(time).await;
        self.proxy.set(Fault::Pass);
    }

    /// Nothing is wrong any more.
    pub(super) async fn calm(&self) {
        self.operate(&["PING"]).await;
    }

    /// A replica of a server that has nothing, and then its own master again.
    async fn demote(&mut self, time: Duration) {
        let port = self.master.port().to_string();
        self.operate(&["REPLICAOF", "127.0.0.1", &port]).await;
        // From here on it admits nobody, until it is a master again.
        self.loses();
        tokio::time::sleep(time).await;
        self.operate(&["REPLICAOF", "NO", "ONE"]).await;
    }

    fn loses(&mut self) {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
        self.losses.push(since.as_micros() as u64);
    }

    async fn operate(&self, command: &[&str]) {
        let mut connection = self.server.connect().await;
        let done = redis::cmd(command[0]).arg(&command[1..]).exec_async(&mut connection).await;
        done.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    }
}
