//! The servers at a URL. Registries on the same servers share their connections, so that one per tenant costs little.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::time::Duration;

use redis::ConnectionInfo;
use sha2::{Digest, Sha256};

use super::cluster::Cluster;
use super::connect::{Sentinels, Target};
use super::node::Node;
use super::url::RedisUrl;
use crate::store::error::StoreError;
use crate::store::tls::Tls;

/// The deployments in use, by the digest of what they were created from, which may contain a password and a key.
static SHARED: LazyLock<Mutex<HashMap<[u8; 32], Weak<Deployment>>>> = LazyLock::new(Mutex::default);

/// The first line of a PEM certificate.
#[cfg(feature = "tls")]
const PEM: &[u8] = b"-----BEGIN CERTIFICATE-----";

pub(super) enum Deployment {
    /// One server, or the current master of several.
    Node(Arc<Node>),
    Cluster(Arc<Cluster>),
}

impl Deployment {
    /// Returns the servers at a URL, which are connected to on first use.
    pub(super) fn new(url: &str, tls: &Tls) -> Result<Self, StoreError> {
        let server = |info| with_certificates(info, tls);
        let servers = |infos: Vec<_>| infos.into_iter().map(server).collect::<Result<Vec<_>, _>>();
        Ok(match RedisUrl::parse(url)? {
            RedisUrl::Server(info) => Deployment::Node(Node::new(Target::Server(server(info)?))),
            RedisUrl::Sentinel { sentinels, master, login } => {
                let sentinels = Sentinels::new(servers(sentinels)?, master, server(login)?);
                Deployment::Node(Node::new(Target::Master(sentinels)))
            }
            RedisUrl::Cluster { seeds } => Deployment::Cluster(Cluster::new(servers(seeds)?)),
        })
    }

    /// Returns the same servers for the same arguments, as long as they are in use. The deadline is one of them because a
    /// server whose replies are too late for some calls is unavailable to those only.
    pub(super) fn shared(url: &str, deadline: Duration, tls: &Tls) -> Result<Arc<Self>, StoreError> {
        let digest = digest(url, deadline, tls);
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(deployment) = shared.get(&digest).and_then(Weak::upgrade) {
            return Ok(deployment);
        }
        let deployment = Arc::new(Deployment::new(url, tls)?);
        shared.retain(|_, deployment| deployment.strong_count() > 0);
        shared.insert(digest, Arc::downgrade(&deployment));
        Ok(deployment)
    }

    /// Returns what kind it is, for log events.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Deployment::Node(node) if matches!(node.target(), Target::Master(_)) => "sentinel",
            Deployment::Node(_) => "single",
            Deployment::Cluster(_) => "cluster",
        }
    }

    /// Returns where its servers are, for log events.
    pub(super) fn address(&self) -> String {
        match self {
            Deployment::Node(node) => node.target().address(),
            Deployment::Cluster(cluster) => cluster.address(),
        }
    }
}

fn digest(url: &str, deadline: Duration, tls: &Tls) -> [u8; 32] {
    let mut hasher = Sha256::new();
    hasher.update(deadline.as_nanos().to_le_bytes());
    let client = tls.client.as_ref();
    for piece in [
        Some(url.as_bytes()),
        tls.authorities.as_deref(),
        client.map(|client| &*client.certificates),
        client.map(|client| &*client.key),
    ] {
        hasher.update(piece.map_or(u64::MAX, |piece| piece.len() as u64).to_le_bytes());
        hasher.update(piece.unwrap_or_default());
    }
    // Tests share nothing: each runtime may have a clock of its own.
    #[cfg(feature = "test-util")]
    if let Ok(runtime) = tokio::runtime::Handle::try_current() {
        hasher.update(runtime.id().to_string());
    }
    hasher.finalize().into()
}

#[cfg(feature = "tls")]
fn with_certificates(info: ConnectionInfo, tls: &Tls) -> Result<ConnectionInfo, StoreError> {
    let Tls { authorities, client } = tls;
    let certificates = authorities.iter().chain(client.iter().map(|client| &client.certificates));
    for pem in certificates {
        if !pem.windows(PEM.len()).any(|window| window == PEM) {
            return Err(StoreError::permanent("invalid TLS certificates: there is none in PEM"));
        }
    }
    if (authorities.is_none() && client.is_none())
        || !matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. })
    {
        return Ok(info);
    }
    let client_tls = client.as_ref().map(|client| redis::ClientTlsConfig {
        client_cert: client.certificates.to_vec(),
        client_key: client.key.to_vec(),
    });
    let root_cert = authorities.as_deref().map(<[u8]>::to_vec);
    redis::Client::build_with_tls(info, redis::TlsCertificates { client_tls, root_cert })
        .map(|client| client.get_connection_info().clone())
        .map_err(|error| StoreError::permanent(format!("invalid TLS certificate or key: {error}")))
}

#[cfg(not(feature = "tls"))]
fn with_certificates(info: ConnectionInfo, _tls: &Tls) -> Result<ConnectionInfo, StoreError> {
    Ok(info)
}

impl fmt::Debug for Deployment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deployment::Node(_) => "Node",
            Deployment::Cluster(_) => "Cluster",
        })
    }
}
