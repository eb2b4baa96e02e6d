//! The address at the other end of a request's connection.

use std::net::{IpAddr, SocketAddr};

#[cfg(feature = "axum")]
use axum::extract::ConnectInfo;
#[cfg(feature = "axum")]
use axum::extract::connect_info::MockConnectInfo;
use http::Extensions;
#[cfg(feature = "tonic")]
use tonic::{Request, metadata::MetadataMap};

/// The address at the other end of the connection, as an extension of a request, for servers that have none of their own.
///
/// With the feature `axum`, `ConnectInfo<SocketAddr>` is found without it, and with the feature `tonic`, what the server of tonic
/// provides for TCP, with TLS or without. With hyper, insert it where you accept connections.
///
/// ```
/// use ratelimits::web::PeerAddr;
///
/// # let peer = "192.0.2.1:4711".parse().unwrap();
/// let mut request = http::Request::new(());
/// request.extensions_mut().insert(PeerAddr(peer));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PeerAddr(pub SocketAddr);

/// How to provide the address, for the log.
pub(super) const ADVICE: &str = "with axum, enable the feature `axum` and serve \
                                 `app.into_make_service_with_connect_info::<SocketAddr>()`; otherwise insert a \
                                 `ratelimits::web::PeerAddr` into the request's extensions";

pub(super) fn address(extensions: &mut Extensions) -> Option<IpAddr> {
    let address = extensions.get::<PeerAddr>().map(|peer| peer.0);
    #[cfg(feature = "axum")]
    let address = address.or_else(|| extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0));
    #[cfg(feature = "axum")]
    let address = address.or_else(|| extensions.get::<MockConnectInfo<SocketAddr>>().map(|info| info.0));
    #[cfg(feature = "tonic")]
    let address = address.or_else(|| tonic_address(extensions));
    address.map(|address| address.ip())
}

/// Asks tonic, which knows its TLS connections by a feature that this crate need not enable.
#[cfg(feature = "tonic")]
fn tonic_address(extensions: &mut Extensions) -> Option<SocketAddr> {
    let request = Request::from_parts(MetadataMap::new(), std::mem::take(extensions), ());
    let address = request.remote_addr();
    *extensions = request.into_parts().1;
    address
}
