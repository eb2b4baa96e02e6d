//! Ports for servers that may be gone for a while and come back on the same one.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::SystemTime;

/// How far above its port a server has another: the bus of a cluster node, or TLS.
pub(crate) const SECOND: u16 = 10_000;

/// All of them, the second ones too, are below the ports that systems give to clients: nobody is given the port of a server
/// that is down.
const FIRST: u16 = 10_240;
const COUNT: u32 = 9_700;

/// A port that nobody listens on, nor on its second. Another process may take it before the server does.
pub(crate) fn free() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let _ = NEXT.compare_exchange(0, seed(), Ordering::Relaxed, Ordering::Relaxed);
    (0..COUNT)
        .map(|_| FIRST + (NEXT.fetch_add(1, Ordering::Relaxed) % COUNT) as u16)
        .find(|port| is_free(*port) && is_free(port + SECOND))
        .expect("a port is free")
}

/// Processes at the same time begin in different places.
fn seed() -> u32 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    (since.subsec_nanos() ^ std::process::id().wrapping_mul(977)) % COUNT
}

fn is_free(port: u16) -> bool {
    TcpListener::bind(("127.0.0.1", port)).is_ok()
}
