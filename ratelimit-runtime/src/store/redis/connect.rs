//! Opens connections: to the server at an address, or to the master that the Sentinels report.
//!
//! We ask the Sentinels ourselves. The Sentinel client of redis-rs (1.8.1) accepts their answers in the configured order
//! and with fixed timeouts, so that a silent first Sentinel delays each failover by more than a second. It also checks
//! the role of the master on another connection than the one that it returns.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, ProtocolVersion, PushInfo, PushKind,
    RedisConnectionInfo, RedisError, RedisResult, cmd,
};

#[cfg(feature = "test-util")]
use super::testing::test_stream::Dialer;
use super::url::with_host;

/// The timeout for opening a connection, which does not depend on the calls that wait for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout for one Sentinel to name the master, and again for connecting to that master.
const SENTINEL_TIMEOUT: Duration = Duration::from_millis(300);

/// What to connect to.
pub(super) enum Target {
    /// The server at an address.
    Server(Server),
    /// The current master.
    Master(Sentinels),
    /// A test's stream.
    #[cfg(feature = "test-util")]
    Stream(Dialer),
}

/// A server's address and login, and the certificates to trust.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) info: ConnectionInfo,
    pub(super) trust: Trust,
}

/// The CA certificates to verify servers with, in PEM; the system's if `None`.
pub(super) type Trust = Option<Arc<[u8]>>;

/// Called when a connection is lost.
pub(super) trait OnLost: Fn() + Clone + Send + Sync + 'static {}

impl<F: Fn() + Clone + Send + Sync + 'static> OnLost for F {}

impl Target {
    /// Returns the timeout for `open`, which allows for the last Sentinel to answer after all others were silent.
    pub(super) fn connect_timeout(&self) -> Duration {
        match self {
            Target::Master(sentinels) => {
                CONNECT_TIMEOUT.max(SENTINEL_TIMEOUT.saturating_mul(2 * sentinels.count()))
            }
            _ => CONNECT_TIMEOUT,
        }
    }

    pub(super) async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        match self {
            Target::Server(server) => server.open(on_lost).await,
            Target::Master(sentinels) => sentinels.open(on_lost).await,
            #[cfg(feature = "test-util")]
            Target::Stream(dialer) => pinged(dialer.open(config(on_lost)).await?).await,
        }
    }
}

impl Server {
    async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        let mut opened = self.try_open(&self.info, on_lost.clone()).await;
        if opened.as_ref().is_err_and(lacks_resp3) {
            let redis = self.info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
            opened = self.try_open(&self.info.clone().set_redis_settings(redis), on_lost).await;
        }
        pinged(opened?).await
    }

    async fn try_open(
        &self,
        info: &ConnectionInfo,
        on_lost: impl OnLost,
    ) -> RedisResult<MultiplexedConnection> {
        let config = match info.redis_settings().protocol() {
            ProtocolVersion::RESP2 => config_without_push(),
            _ => config(on_lost),
        };
        self.client(info.clone())?.get_multiplexed_async_connection_with_config(&config).await
    }

    #[cfg(feature = "tls")]
    fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        match &self.trust {
            Some(pem) if matches!(info.addr(), redis::ConnectionAddr::TcpTls { .. }) => {
                let certificates = redis::TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) };
                Client::build_with_tls(info, certificates)
            }
            _ => Client::open(info),
        }
    }

    #[cfg(not(feature = "tls"))]
    fn client(&self, info: ConnectionInfo) -> RedisResult<Client> {
        Client::open(info)
    }
}

/// The Sentinels that watch the master of this name.
pub(super) struct Sentinels {
    sentinels: Vec<Server>,
    master: String,
    /// The login of the master, at any address.
    login: Server,
    /// The index of the Sentinel to ask first: the one that named the last master.
    first: AtomicUsize,
}

impl Sentinels {
    pub(super) fn new(sentinels: Vec<Server>, master: String, login: Server) -> Self {
        Sentinels { sentinels, master, login, first: AtomicUsize::new(0) }
    }

    fn count(&self) -> u32 {
        self.sentinels.len().try_into().unwrap_or(u32::from(u16::MAX))
    }

    async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        let first = self.first.load(Ordering::Relaxed);
        let count = self.sentinels.len();
        let mut reported = no_master("no Sentinel responded");
        for index in (first..first + count).map(|index| index % count) {
            match self.open_master(&self.sentinels[index], on_lost.clone()).await {
                Ok(connection) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                // An answer says more than the absence of another Sentinel.
                Err(error) if index == first % count || !error.is_io_error() => reported = error,
                Err(_) => {}
            }
        }
        Err(reported)
    }

    async fn open_master(
        &self,
        sentinel: &Server,
        on_lost: impl OnLost,
    ) -> RedisResult<MultiplexedConnection> {
        let (host, port) = with_timeout(self.master_address(sentinel)).await?;
        let info = with_host(&self.login.info, &host, port);
        let master = Server { info, trust: self.login.trust.clone() };
        with_timeout(async {
            let mut connection = master.open(on_lost).await?;
            // A former master may not have noticed its demotion yet. If we may not ask for the role, trust the Sentinel.
            let role: RedisResult<Vec<redis::Value>> = cmd("ROLE").query_async(&mut connection).await;
            match role.as_deref() {
                Ok([redis::Value::BulkString(role), ..]) if role != b"master" => {
                    Err(no_master("the server that Sentinel reports is not a master"))
                }
                _ => Ok(connection),
            }
        })
        .await
    }

    async fn master_address(&self, sentinel: &Server) -> RedisResult<(String, u16)> {
        let open = |server: Server| async move { server.open(|| {}).await };
        let mut connection = match open(sentinel.clone()).await {
            // A Sentinel without a password refuses the server's.
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS") =>
            {
                let info = sentinel.info.clone().set_redis_settings(RedisConnectionInfo::default());
                open(Server { info, trust: sentinel.trust.clone() }).await?
            }
            opened => opened?,
        };
        let mut command = cmd("SENTINEL");
        command.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.master);
        let address: Option<(String, u16)> = command.query_async(&mut connection).await?;
        address.ok_or_else(|| no_master("the Sentinel knows no master of this name"))
    }
}

fn no_master(problem: &'static str) -> RedisError {
    RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, problem))
}

/// Whether the server does not know `HELLO`, with which a RESP3 connection starts, or does not speak RESP3.
fn lacks_resp3(error: &RedisError) -> bool {
    let unknown = |detail: &str| detail.starts_with("unknown command");
    error.kind() == ErrorKind::RESP3NotSupported
        || error.code() == Some("NOPROTO")
        || error.code() == Some("ERR") && error.detail().is_some_and(unknown)
}

/// Returns the connection once the server responds: it may accept connections long before it accepts commands.
async fn pinged(mut connection: MultiplexedConnection) -> RedisResult<MultiplexedConnection> {
    match cmd("PING").exec_async(&mut connection).await {
        // A response, too: this user may run no more than the scripts need.
        Err(error) if error.code() == Some("NOPERM") => Ok(connection),
        result => result.map(|()| connection),
    }
}

async fn with_timeout<T>(result: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let timed_out = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(SENTINEL_TIMEOUT, result).await.map_err(timed_out)?
}

fn config(on_lost: impl OnLost) -> AsyncConnectionConfig {
    config_without_push().set_push_sender(move |push: PushInfo| {
        if push.kind == PushKind::Disconnection {
            on_lost();
        }
        Ok::<(), std::convert::Infallible>(())
    })
}

/// Without the timeouts of redis-rs: the callers set their own.
fn config_without_push() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(1024)
}

impl fmt::Debug for Target {
    /// Omits everything that may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target")
    }
}
