//! Opens a connection to a server: the one at an address, or the one that the Sentinels call the master.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, ProtocolVersion, PushInfo, PushKind,
    RedisError, RedisResult, cmd,
};

use super::address::elsewhere;

/// So long a connection may take to be opened, whoever waits for it.
const OPENED_WITHIN: Duration = Duration::from_secs(1);

/// So long one Sentinel may take to tell who the master is, and so long that one to let us in.
const SENTINEL_WITHIN: Duration = Duration::from_millis(300);

/// Whom to connect to.
pub(super) enum Target {
    /// The server at an address.
    Server(Server),
    /// Whoever is the master.
    Master(Sentinels),
    /// A server of a test's own.
    #[cfg(feature = "test-util")]
    Stream(super::stream::Dialer),
}

/// A server, how it lets us in, and the certificates that are trusted.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) info: ConnectionInfo,
    pub(super) trust: Trust,
}

/// The certificates of the authorities that a server is verified by, in PEM; those of the system if none are given.
pub(super) type Trust = Option<std::sync::Arc<[u8]>>;

/// Told when a connection is gone.
pub(super) trait OnLost: Fn() + Clone + Send + Sync + 'static {}

impl<F: Fn() + Clone + Send + Sync + 'static> OnLost for F {}

impl Target {
    /// Within that it is opened, or never: with Sentinels there is time for the last one after all others were silent.
    pub(super) fn opened_within(&self) -> Duration {
        match self {
            Target::Master(sentinels) => {
                OPENED_WITHIN.max(SENTINEL_WITHIN.saturating_mul(2 * sentinels.count()))
            }
            _ => OPENED_WITHIN,
        }
    }

    pub(super) async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        match self {
            Target::Server(server) => server.open(on_lost).await,
            Target::Master(sentinels) => sentinels.open(on_lost).await,
            #[cfg(feature = "test-util")]
            Target::Stream(dialer) => alive(dialer.open(config(on_lost)).await?).await,
        }
    }
}

impl Server {
    async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        let mut opened = self.try_open(&self.info, on_lost.clone()).await;
        if opened.as_ref().is_err_and(knows_no_resp3) {
            let redis = self.info.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
            opened = self.try_open(&self.info.clone().set_redis_settings(redis), on_lost).await;
        }
        alive(opened?).await
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

/// The Sentinels that know who the master of this name is.
pub(super) struct Sentinels {
    sentinels: Vec<Server>,
    name: String,
    login: Server,
    /// Who knew it last is asked first.
    first: AtomicUsize,
}

impl Sentinels {
    pub(super) fn new(sentinels: Vec<Server>, name: String, login: Server) -> Self {
        Sentinels { sentinels, name, login, first: AtomicUsize::new(0) }
    }

    fn count(&self) -> u32 {
        self.sentinels.len().try_into().unwrap_or(u32::from(u16::MAX))
    }

    async fn open(&self, on_lost: impl OnLost) -> RedisResult<MultiplexedConnection> {
        let first = self.first.load(Ordering::Relaxed);
        let count = self.sentinels.len();
        let mut problem = RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, "no Sentinel answers"));
        for at in (first..first + count).map(|at| at % count) {
            match self.open_as_told_by(&self.sentinels[at], on_lost.clone()).await {
                Ok(connection) => {
                    self.first.store(at, Ordering::Relaxed);
                    return Ok(connection);
                }
                // What one has told says more than that another one is gone.
                Err(error) if at == first % count || !error.is_io_error() => problem = error,
                Err(_) => {}
            }
        }
        Err(problem)
    }

    async fn open_as_told_by(
        &self,
        sentinel: &Server,
        on_lost: impl OnLost,
    ) -> RedisResult<MultiplexedConnection> {
        let (host, port) = in_time(self.ask(sentinel)).await?;
        let info = elsewhere(&self.login.info, &host, port);
        let login = Server { info, trust: self.login.trust.clone() };
        in_time(async {
            let mut connection = login.open(on_lost).await?;
            // One that was the master may not know yet that it is not. A server that does not let us ask is believed.
            let role: RedisResult<Vec<redis::Value>> = cmd("ROLE").query_async(&mut connection).await;
            match role.as_deref() {
                Ok([redis::Value::BulkString(role), ..]) if role != b"master" => {
                    let problem = "the server that a Sentinel calls the master is none";
                    Err(RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, problem)))
                }
                _ => Ok(connection),
            }
        })
        .await
    }

    async fn ask(&self, sentinel: &Server) -> RedisResult<(String, u16)> {
        let open = |server: Server| async move { server.open(|| {}).await };
        let mut connection = match open(sentinel.clone()).await {
            // One without a login of its own refuses that of the server.
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS") =>
            {
                let info = sentinel.info.clone().set_redis_settings(redis::RedisConnectionInfo::default());
                open(Server { info, trust: sentinel.trust.clone() }).await?
            }
            opened => opened?,
        };
        let mut ask = cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(&self.name);
        let master: Option<(String, u16)> = ask.query_async(&mut connection).await?;
        let unknown = "the Sentinel knows no master of this name";
        master.ok_or_else(|| RedisError::from((ErrorKind::MasterNameNotFoundBySentinel, unknown)))
    }
}

/// Whether the server does not know the first command of a connection that speaks RESP3, or does not speak it.
fn knows_no_resp3(error: &RedisError) -> bool {
    let unknown = |detail: &str| detail.starts_with("unknown command");
    error.kind() == ErrorKind::RESP3NotSupported
        || error.code() == Some("NOPROTO")
        || error.code() == Some("ERR") && error.detail().is_some_and(unknown)
}

/// A server may take connections long before it takes commands.
async fn alive(mut connection: MultiplexedConnection) -> RedisResult<MultiplexedConnection> {
    match cmd("PING").exec_async(&mut connection).await {
        // An answer as well: this user has the rights that the scripts need, and no others.
        Err(error) if error.code() == Some("NOPERM") => Ok(connection),
        answered => answered.map(|()| connection),
    }
}

async fn in_time<T>(opening: impl Future<Output = RedisResult<T>>) -> RedisResult<T> {
    let late = |_| RedisError::from(std::io::Error::from(std::io::ErrorKind::TimedOut));
    tokio::time::timeout(SENTINEL_WITHIN, opening).await.map_err(late)?
}

fn config(on_lost: impl OnLost) -> AsyncConnectionConfig {
    config_without_push().set_push_sender(move |push: PushInfo| {
        if push.kind == PushKind::Disconnection {
            on_lost();
        }
        Ok::<(), std::convert::Infallible>(())
    })
}

/// The times are bounded by those who ask.
fn config_without_push() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(1024)
}

impl fmt::Debug for Target {
    /// Without anything that may hold a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Target")
    }
}
