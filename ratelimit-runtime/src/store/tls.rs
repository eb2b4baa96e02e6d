//! The certificates of connections over TLS.

use std::sync::Arc;

/// Certificates and keys, as PEM.
#[derive(Clone, Default)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "there is no server to connect to"))]
pub(crate) struct Tls {
    /// The authorities to verify servers with; those of the system if `None`.
    pub(crate) authorities: Option<Arc<[u8]>>,
    /// What servers are to verify.
    pub(crate) client: Option<ClientCertificate>,
}

/// A certificate, with those that lead to its authority, and its key.
#[derive(Clone)]
#[cfg_attr(not(feature = "redis"), expect(dead_code, reason = "there is no server to present it to"))]
pub(crate) struct ClientCertificate {
    pub(crate) certificates: Arc<[u8]>,
    pub(crate) key: Arc<[u8]>,
}
