//! How soon Redis decides again after a fault, and that until then each call ends in time and a server that is down gets few
//! connection attempts. Targets are asserted at five times their value, for busy machines, and recovery times printed.

mod cluster;
mod half_open;
mod login;
mod sentinels;
mod servers;
mod traffic;

use std::time::{Duration, Instant};

use self::traffic::Traffic;
use super::MAX_LATENCY;
use crate::support::proxy::Proxy;
use crate::support::server::Server;

/// The default pause between calls.
const FREQUENT: Duration = Duration::from_millis(10);
/// How long a fault lasts once calls fail.
const DOWN: Duration = Duration::from_millis(500);

/// A fault, and how soon calls are to succeed after its end.
#[derive(Clone, Copy)]
struct Fault {
    name: &'static str,
    target: Duration,
    down: Duration,
}

impl Fault {
    const fn new(name: &'static str, target: Duration) -> Fault {
        Fault { name, target, down: DOWN }
    }
}

/// A server, a proxy in front of it, and frequent calls.
struct Fixture {
    server: Server,
    proxy: Proxy,
    traffic: Traffic,
}

impl Fixture {
    async fn start() -> Fixture {
        Fixture::start_as(Server::start(), "").await
    }

    /// Calls with a login, as `user:password@`.
    async fn start_as(server: Server, login: &str) -> Fixture {
        let proxy = Proxy::to(server.address()).await;
        let traffic = Traffic::start(&format!("redis://{login}{}", proxy.address())).await;
        Fixture { server, proxy, traffic }
    }

    /// Asserts that calls fail during the fault, with few connection attempts, and succeed soon after it. Returns the count of
    /// connections since its end.
    async fn recovers_from(
        &self,
        fault: Fault,
        begin: impl AsyncFnOnce(&Fixture),
        end: impl AsyncFnOnce(&Fixture),
    ) -> Attempts<'_> {
        let attempts = Attempts::count(&self.proxy);
        begin(self).await;
        self.traffic.failure_after(attempts.start).await;
        tokio::time::sleep(fault.down).await;
        attempts.assert_few();
        end(self).await;
        let attempts = Attempts::count(&self.proxy);
        recovers(fault.name, fault.target, attempts.start, &self.traffic).await;
        attempts
    }
}

/// Asserts that calls succeed soon after `since`.
async fn recovers(what: &str, target: Duration, since: Instant, traffic: &Traffic) {
    let took = traffic.success_after(since).await;
    println!("recovery: {what}: {} ms", took.as_millis());
    traffic.stalls.assert_within(5 * target, took, what);
    traffic.stalls.assert_within(MAX_LATENCY, traffic.longest(), "a call");
}

/// Counts connection attempts.
struct Attempts<'a> {
    proxy: &'a Proxy,
    before: u64,
    start: Instant,
}

impl Attempts<'_> {
    fn count(proxy: &Proxy) -> Attempts<'_> {
        Attempts { proxy, before: proxy.accepted(), start: Instant::now() }
    }

    fn made(&self) -> u64 {
        self.proxy.accepted() - self.before
    }

    /// Asserts that the server is left alone during an outage: at most ten attempts per second, and ten more in the first.
    fn assert_few(&self) {
        let (made, time) = (self.made(), self.start.elapsed());
        assert!(made <= 10 * (time.as_secs() + 1), "{made} connection attempts in {time:?}");
    }

    /// Asserts that soon after a recovery there are as many new connections as there were before. On a busy machine a reply
    /// may be late even then, and a connection that leaves its only call unanswered is replaced.
    async fn assert_settled(&self, traffic: &[&Traffic]) {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let new = self.made();
        let timeouts: u64 = traffic.iter().map(|traffic| traffic.timeouts_after(self.start)).sum();
        assert!(new <= 2 + timeouts, "{new} new connections after {timeouts} timeouts");
    }
}
