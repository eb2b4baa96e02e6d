//! The faults.

use std::time::Duration;

use crate::faults::unix_micros;
use crate::support::proxy::{Fault, Proxy};
use crate::support::random::Random;
use crate::support::server::Server;

#[derive(Clone, Copy, Debug)]
enum Event {
    Kill,
    Suspend,
    FlushScripts,
    KillClients,
    PauseClients,
    Sleep,
    Network(Fault),
    Reset,
    HalfClose,
    Refuse,
    FillMemory,
    Demote,
}

impl Event {
    const ALL: [Event; 16] = [
        Event::Kill,
        Event::Suspend,
        Event::FlushScripts,
        Event::KillClients,
        Event::PauseClients,
        Event::Sleep,
        Event::Network(Fault::BlackHole),
        Event::Network(Fault::Stall),
        // Below the deadline, and above it.
        Event::Network(Fault::Latency(Duration::from_millis(15))),
        Event::Network(Fault::Latency(Duration::from_millis(80))),
        Event::Reset,
        Event::HalfClose,
        Event::Refuse,
        Event::Network(Fault::SwallowNextThenReset),
        Event::FillMemory,
        Event::Demote,
    ];
}

/// A server, the proxy in front of it, and another server that is its master for a while.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) server: Server,
    pub(super) proxy: Proxy,
    master: Server,
    /// When the server lost its data (Unix time in µs). Nothing is admitted right before.
    pub(super) losses: Vec<u64>,
}

impl Target {
    pub(super) async fn start() -> Target {
        let (server, master) = (Server::start(), Server::start());
        let proxy = Proxy::to(server.address()).await;
        Target { server, proxy, master, losses: Vec::new() }
    }

    /// Causes every fault, in random order.
    pub(super) async fn play_all(&mut self, random: &mut Random) {
        let mut events = Event::ALL.to_vec();
        while !events.is_empty() {
            let event = events.swap_remove(random.below(events.len() as u64) as usize);
            self.play(event, Duration::from_millis(random.between(50, 600))).await;
            tokio::time::sleep(Duration::from_millis(random.between(0, 300))).await;
        }
    }

    /// Causes a fault, and undoes it after this time.
    async fn play(&mut self, event: Event, time: Duration) {
        match event {
            Event::Kill => {
                self.server.kill();
                self.losses.push(unix_micros());
                tokio::time::sleep(time / 4).await;
                self.server.restart().await;
            }
            Event::Suspend => {
                self.server.pause();
                tokio::time::sleep(time).await;
                self.server.resume();
            }
            Event::FlushScripts => self.server.command::<()>(&["SCRIPT", "FLUSH"]).await,
            Event::KillClients => self.server.kill_clients().await,
            Event::PauseClients => {
                self.server.command::<()>(&["CLIENT", "PAUSE", &time.as_millis().to_string(), "ALL"]).await;
            }
            Event::Sleep => {
                self.server.command::<()>(&["DEBUG", "SLEEP", &time.as_secs_f64().to_string()]).await;
            }
            Event::Reset => self.proxy.reset().await,
            Event::HalfClose => self.proxy.half_close(),
            Event::Refuse => {
                self.proxy.cut().await;
                tokio::time::sleep(time).await;
                self.proxy.listen().await;
            }
            Event::FillMemory => {
                self.server.configure("maxmemory", "1").await;
                tokio::time::sleep(time).await;
                self.server.configure("maxmemory", "0").await;
            }
            Event::Demote => self.demote(time).await,
            Event::Network(fault) => {
                self.proxy.set(fault);
                tokio::time::sleep(time).await;
                self.proxy.set(Fault::Pass);
            }
        }
    }

    /// Makes the server a replica of an empty master, and then a master again.
    async fn demote(&mut self, time: Duration) {
        self.server.replicate(Some(&self.master.address())).await;
        // From here on it admits nothing, until it is a master again.
        self.losses.push(unix_micros());
        tokio::time::sleep(time).await;
        self.server.replicate(None).await;
    }
}
