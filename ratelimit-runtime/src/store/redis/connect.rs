//! Opens connections: to the server at an address, or to the master that the Sentinels report.
//!
//! We ask the Sentinels ourselves. The Sentinel client of redis-rs (1.8.1) accepts their answers in the configured order
//! and with fixed timeouts, so that a silent first Sentinel delays each failover by more than a second. It also checks
//! the role of the master on another connection than the one that it returns.

use std::fmt;
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use redis::aio::{ConnectionLike, MultiplexedConnection};
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, Pipeline, ProtocolVersion, PushInfo, PushKind,
    RedisConnectionInfo, RedisError, RedisResult, cmd,
};

use super::address::{address_of, addresses_of};
use super::connection::OpenConnection;
#[cfg(feature = "test-util")]
use super::testing::test_stream::Dialer;
use super::url::with_host;

/// The timeout for opening a connection, which does not depend on the calls that wait for it.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(1);

/// The timeout for one Sentinel to name the master, and again for connecting to that master.
const SENTINEL_TIMEOUT: Duration = Duration::from_millis(300);

/// What connections are called in `CLIENT LIST`.
const CLIENT_NAME: &str = "ratelimits";

/// What to connect to.
pub(super) enum Target {
    /// The server at an address, with a login.
    Server(ConnectionInfo),
    /// The current master.
    Master(Sentinels),
    /// A test's stream.
    #[cfg(feature = "test-util")]
    Stream(Dialer),
}

/// Why a connection could not be opened.
pub(super) struct ConnectError {
    /// The server that could not be reached, or that refused.
    pub(super) server: String,
    pub(super) error: RedisError,
}

type ConnectResult<T> = Result<T, ConnectError>;

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

    /// Returns the address of the server, or the name of the master and the addresses of its Sentinels.
    pub(super) fn address(&self) -> String {
        match self {
            Target::Server(server) => address_of(server),
            Target::Master(by) => format!("{} at {}", by.master, addresses_of(&by.sentinels)),
            #[cfg(feature = "test-util")]
            Target::Stream(_) => String::from("stream"),
        }
    }

    pub(super) async fn open(&self, on_lost: impl OnLost) -> ConnectResult<OpenConnection> {
        match self {
            Target::Server(server) => {
                open(server, on_lost).await.map_err(|error| ConnectError { server: self.to_string(), error })
            }
            Target::Master(sentinels) => sentinels.open(on_lost).await,
            #[cfg(feature = "test-util")]
            Target::Stream(dialer) => {
                let opened = async { ready(dialer.open(config(on_lost)).await?).await };
                let connection =
                    opened.await.map_err(|error| ConnectError { server: self.to_string(), error })?;
                Ok(OpenConnection { connection, reports_loss: true })
            }
        }
    }
}

async fn open(server: &ConnectionInfo, on_lost: impl OnLost) -> RedisResult<OpenConnection> {
    let mut opened = try_open(server, on_lost.clone()).await;
    if opened.as_ref().is_err_and(|error| lacks_resp3(error, server.redis_settings())) {
        let redis = server.redis_settings().clone().set_protocol(ProtocolVersion::RESP2);
        opened = try_open(&server.clone().set_redis_settings(redis), on_lost).await;
    }
    let OpenConnection { connection, reports_loss } = opened?;
    Ok(OpenConnection { connection: ready(connection).await?, reports_loss })
}

async fn try_open(server: &ConnectionInfo, on_lost: impl OnLost) -> RedisResult<OpenConnection> {
    let reports_loss = server.redis_settings().protocol() != ProtocolVersion::RESP2;
    let config = if reports_loss { config(on_lost) } else { config_without_push() };
    #[cfg(feature = "tls")]
    if matches!(server.addr(), redis::ConnectionAddr::TcpTls { .. }) {
        // rustls panics if it would have to choose between several providers.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
    let client = Client::open(server.clone())?;
    let connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    Ok(OpenConnection { connection, reports_loss })
}

/// The Sentinels that watch the master of this name.
pub(super) struct Sentinels {
    sentinels: Vec<ConnectionInfo>,
    master: String,
    /// The login of the master, at any address.
    login: ConnectionInfo,
    /// The index of the Sentinel to ask first: the one that named the last master.
    first: AtomicUsize,
}

impl Sentinels {
    pub(super) fn new(sentinels: Vec<ConnectionInfo>, master: String, login: ConnectionInfo) -> Self {
        Sentinels { sentinels, master, login, first: AtomicUsize::new(0) }
    }

    fn count(&self) -> u32 {
        self.sentinels.len().try_into().unwrap_or(u32::from(u16::MAX))
    }

    async fn open(&self, on_lost: impl OnLost) -> ConnectResult<OpenConnection> {
        let first = self.first.load(Ordering::Relaxed);
        let count = self.sentinels.len();
        let mut reported = None;
        for index in (first..first + count).map(|index| index % count) {
            match self.open_master(&self.sentinels[index], on_lost.clone()).await {
                Ok(connection) => {
                    self.first.store(index, Ordering::Relaxed);
                    return Ok(connection);
                }
                // An answer says more than the absence of another Sentinel.
                Err(failed) if reported.is_none() || !failed.error.is_io_error() => reported = Some(failed),
                Err(_) => {}
            }
        }
        Err(reported.unwrap_or_else(|| ConnectError {
            server: String::from("Redis"),
            error: no_master("the URL names no Sentinel"),
        }))
    }

    async fn open_master(
        &self,
        sentinel: &ConnectionInfo,
        on_lost: impl OnLost,
    ) -> ConnectResult<OpenConnection> {
        let address = with_timeout(self.master_address(sentinel)).await;
        let (host, port) = address.map_err(|error| ConnectError {
            server: format!("the Sentinel at {}", address_of(sentinel)),
            error,
        })?;
        let master = with_host(&self.login, &host, port);
        let opened = with_timeout(async {
            let mut opened = open(&master, on_lost).await?;
            // A former master may not have noticed its demotion yet. If we may not ask for the role, trust the Sentinel.
            let role: RedisResult<Vec<redis::Value>> = cmd("ROLE").query_async(&mut opened.connection).await;
            match role.as_deref() {
                Ok([redis::Value::BulkString(role), ..]) if role != b"master" => {
                    Err(no_master("the server that Sentinel reports is not a master"))
                }
                _ => Ok(opened),
            }
        });
        opened
            .await
            .map_err(|error| ConnectError { server: format!("Redis at {}", address_of(&master)), error })
    }

    async fn master_address(&self, sentinel: &ConnectionInfo) -> RedisResult<(String, u16)> {
        let OpenConnection { mut connection, .. } = match open(sentinel, || {}).await {
            // A Sentinel without a password refuses the server's.
            Err(error)
                if error.kind() == ErrorKind::AuthenticationFailed || error.code() == Some("WRONGPASS") =>
            {
                let without_login = sentinel.clone().set_redis_settings(RedisConnectionInfo::default());
                open(&without_login, || {}).await?
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
fn lacks_resp3(error: &RedisError, login: &RedisConnectionInfo) -> bool {
    let unknown = |detail: &str| detail.starts_with("unknown command");
    match error.code() {
        Some("NOPROTO") => true,
        Some("ERR") => error.detail().is_some_and(unknown),
        // Valkey 9.1 says so of a command that it does not know, before the login.
        Some("NOAUTH") => login.password().is_some(),
        _ => error.kind() == ErrorKind::RESP3NotSupported,
    }
}

/// Names the connection, and returns it once the server responds: it may accept connections long before it accepts
/// commands.
async fn ready(mut connection: MultiplexedConnection) -> RedisResult<MultiplexedConnection> {
    let mut pipeline = Pipeline::new();
    pipeline.cmd("PING").cmd("CLIENT").arg("SETNAME").arg(CLIENT_NAME);
    // The name is a courtesy to operators, which the user may not have the permission for.
    let replies = connection.req_packed_commands(&pipeline, 0, 2).await?;
    match replies.into_iter().next().map_or(Ok(redis::Value::Nil), redis::Value::extract_error) {
        // A response, too: this user may run no more than the scripts need.
        Err(error) if error.code() == Some("NOPERM") => Ok(connection),
        result => result.map(|_| connection),
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

impl fmt::Display for Target {
    /// Omits everything that may hold a user or a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Server(server) => write!(f, "Redis at {}", address_of(server)),
            Target::Master(sentinels) => write!(f, "the Redis master `{}`", sentinels.master),
            #[cfg(feature = "test-util")]
            Target::Stream(_) => f.write_str("Redis"),
        }
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks_resp3_with(password: Option<&str>, reply: &str) -> bool {
        let error = redis::parse_redis_value(reply.as_bytes()).unwrap().extract_error().unwrap_err();
        let login = RedisConnectionInfo::default();
        lacks_resp3(
            &error,
            &password.map_or_else(|| login.clone(), |password| login.clone().set_password(password)),
        )
    }

    #[test]
    fn servers_without_hello_are_recognized() {
        for password in [None, Some("secret")] {
            assert!(lacks_resp3_with(password, "-ERR unknown command 'HELLO', with args\r\n"));
            assert!(lacks_resp3_with(password, "-ERR unknown command `HELLO`, with args\r\n"));
            assert!(lacks_resp3_with(password, "-NOPROTO unsupported protocol version\r\n"));
            assert!(!lacks_resp3_with(password, "-WRONGPASS invalid username-password pair\r\n"));
        }
        assert!(lacks_resp3_with(Some("secret"), "-NOAUTH Authentication required.\r\n"));
        // There is nothing to log in with.
        assert!(!lacks_resp3_with(None, "-NOAUTH Authentication required.\r\n"));
    }
}
