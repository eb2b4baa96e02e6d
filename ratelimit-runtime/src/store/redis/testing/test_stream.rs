//! A test's streams in place of connections.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, ProtocolVersion, RedisConnectionInfo, RedisResult};
use tokio::io::{AsyncRead, AsyncWrite};

/// A byte stream to a simulated server.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin + 'static {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin + 'static> Stream for S {}

type DialFuture<'a> = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send + 'a>>;

/// Opens streams.
pub trait Dial: Send + Sync + 'static {
    /// Opens a stream.
    fn dial(&self) -> DialFuture<'_>;
}

/// Opens connections over streams.
pub(crate) struct Dialer(Arc<dyn Dial>);

impl Dialer {
    pub(crate) fn new(dial: impl Dial) -> Self {
        Dialer(Arc::new(dial))
    }

    pub(crate) async fn open(&self, config: AsyncConnectionConfig) -> RedisResult<MultiplexedConnection> {
        let stream = self.0.dial().await?;
        let settings =
            RedisConnectionInfo::default().set_protocol(ProtocolVersion::RESP3).set_skip_set_lib_name();
        let (connection, driver) = MultiplexedConnection::new_with_config(&settings, stream, config).await?;
        tokio::spawn(driver);
        Ok(connection)
    }
}
