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

/// The default pause between calls.
const FREQUENT: Duration = Duration::from_millis(10);
/// How long a fault lasts once calls fail.
const DOWN: Duration = Duration::from_secs(1);

/// Asserts that calls succeed soon after `since`, and returns how long it took.
async fn recovers(what: &str, target: Duration, since: Instant, traffic: &Traffic) -> Duration {
    let took = traffic.success_after(since).await;
    println!("recovery: {what}: {} ms", took.as_millis());
    traffic.stalls.assert_within(5 * target, took, what);
    traffic.stalls.assert_within(MAX_LATENCY, traffic.longest(), "a call");
    took
}

/// Counts connection attempts during an outage.
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

    /// At most ten per second, and ten more in the first.
    fn assert_few(&self) {
        let (made, time) = (self.made(), self.start.elapsed());
        assert!(made <= 10 * (time.as_secs() + 1), "{made} connection attempts in {time:?}");
    }
}
