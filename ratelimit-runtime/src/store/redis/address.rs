//! What log events and errors call servers: never with a user or a password.

use redis::{ConnectionAddr, ConnectionInfo};

/// Returns the host and port, or the path of a socket.
pub(super) fn address_of(server: &ConnectionInfo) -> String {
    match server.addr() {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } if host.contains(':') => {
            format!("[{host}]:{port}")
        }
        addr => addr.to_string(),
    }
}

/// Returns the addresses of several servers.
pub(super) fn addresses_of<'a>(servers: impl IntoIterator<Item = &'a ConnectionInfo>) -> String {
    servers.into_iter().map(address_of).collect::<Vec<_>>().join(", ")
}
