//! Ports for servers that go down and come back on the same port.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// The distance from a server's port to its second one: the cluster bus, or TLS.
pub(crate) const SECOND: u16 = 10_000;

/// All ports, the second ones too, are below the ephemeral range, so the port of a server that is down stays free.
const FIRST: u16 = 10_240;
const COUNT: u32 = 9_700;

/// Returns a port that is free, as is its second one. Another process may still take it before the server does.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let _ = NEXT.compare_exchange(0, seed(), Ordering::Relaxed, Ordering::Relaxed);
    (0..COUNT)
        .map(|_| FIRST + (NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) as u16)
        .find(|port| is_free(*port) && is_free(port + SECOND))
        .expect("a port is free")
}

/// Concurrent test processes start at different ports.
fn seed() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.subsec_nanos() ^ std::process::id().wrapping_mul(977)) % COUNT
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
