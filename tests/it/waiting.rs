//! Calls that wait for permits in Redis, under its own clock. `tests/paused` has the tests with exact times.

mod cancelled;
mod drops;
mod events;
mod limits;
mod order;
mod stacks;
mod windows;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ratelimits::{Decision, Error, Limiter, Registry};
use redis::aio::MultiplexedConnection;

use crate::support::registries::LONG_DEADLINE;
use crate::support::server::{Server, script_calls};

/// Longer than anything takes here.
const TIMEOUT: Duration = Duration::from_secs(20);

type AcquireFuture = Pin<Box<dyn Future<Output = Result<Decision, Error>> + Send>>;

/// A server of its own, whose script calls are counted.
struct CountingServer {
    server: Server,
    connection: MultiplexedConnection,
}

impl CountingServer {
    async fn start() -> Self {
        let server = Server::start();
        let connection = server.connect().await;
        CountingServer { server, connection }
    }

    fn registry(&self) -> Registry {
        let builder = Registry::builder().deadline(LONG_DEADLINE).without_batches();
        builder.connect_lazy(&self.server.url()).unwrap()
    }

    /// Returns the time of Redis in microseconds.
    async fn time(&self) -> u128 {
        let mut connection = self.connection.clone();
        let (seconds, micros): (u128, u128) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        seconds * 1_000_000 + micros
    }

    /// Returns the number of script calls so far.
    async fn calls(&self) -> u64 {
        script_calls(&mut self.connection.clone()).await
    }

    /// Waits until exactly this many scripts have been called.
    async fn wait_for_calls(&self, calls: u64) {
        let begin = Instant::now();
        let mut now = self.calls().await;
        while now < calls {
            assert!(begin.elapsed() < TIMEOUT, "{now} script calls instead of {calls}");
            tokio::task::yield_now().await;
            now = self.calls().await;
        }
        assert_eq!(now, calls);
    }

    /// Returns the value of the only key in Redis.
    async fn stored(&self) -> Option<String> {
        let mut connection = self.connection.clone();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        assert!(keys.len() <= 1, "{keys:?}");
        redis::cmd("GET").arg(keys.first()?).query_async(&mut connection).await.unwrap()
    }

    async fn flush(&self) {
        let mut connection = self.connection.clone();
        let () = redis::cmd("FLUSHDB").query_async(&mut connection).await.unwrap();
    }
}

fn acquire(limiter: &Limiter, cost: u64) -> AcquireFuture {
    let limiter = limiter.clone();
    Box::pin(async move { limiter.acquire_n((), cost).await })
}

fn poll(call: &mut AcquireFuture) -> Poll<Result<Decision, Error>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Connects, and loads the limiter's scripts into the server.
async fn warm_up(limiter: &Limiter) {
    for _ in 0..2 {
        limiter.try_acquire("warm").await.unwrap().refund().await.unwrap();
        // Calls that may wait have another script.
        limiter.acquire_timeout("warm", TIMEOUT).await.unwrap().refund().await.unwrap();
    }
    limiter.reset("warm").await.unwrap();
}
