//! What the tests of Redis in trouble stand on does what it says: the proxy with its faults, and servers that die, stop,
//! hand over and move their slots.

mod cluster;
mod proxy;
mod sentinels;
mod servers;

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisResult};

/// A connection that waits so long for an answer, and never begins anew.
async fn connect(url: &str, timeout: Duration) -> RedisResult<MultiplexedConnection> {
    let config = AsyncConnectionConfig::new()
        .set_response_timeout(Some(timeout))
        .set_connection_timeout(Some(timeout));
    Client::open(url)?.get_multiplexed_async_connection_with_config(&config).await
}

async fn increment(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<u64> {
    redis::cmd("INCR").arg(key).query_async(connection).await
}

async fn get(connection: &mut MultiplexedConnection, key: &str) -> RedisResult<u64> {
    redis::cmd("GET").arg(key).query_async(connection).await
}
