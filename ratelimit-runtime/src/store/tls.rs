//! The certificates of connections over TLS.

use std::fmt;
use std::sync::Arc;

/// Certificates and keys, as PEM.
#[derive(Clone, Default)]
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

impl fmt::Debug for Tls {
    /// Omits the key.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("authorities", &self.authorities.is_some())
            .field("client", &self.client.is_some())
            .finish()
    }
}
