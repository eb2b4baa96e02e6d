//! A plain Redis client for the tests of the fixtures.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

/// A connection with this timeout for connecting and for each reply. It does not reconnect.
pub(crate) async fn connect(url: &str, timeout: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(timeout))
        .set_connection_timeout(Some(timeout));
    Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}

pub(crate) async fn increment(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<u64> {
    redis::cmd("INCR").arg(key).query_async(connection).await
}

pub(crate) async fn get(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<u64> {
    redis::cmd("GET").arg(key).query_async(connection).await
}
