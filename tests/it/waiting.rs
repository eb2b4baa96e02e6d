//! Calls that wait on Redis under its own time, and what holds for both stores. Where the clock is paused more is told:
//! `tests/paused`.

mod cancelled;
mod drops;
mod limits;
mod order;
mod told;
mod windows;

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use ratelimits::{Decision, Error, Limiter, Registry};
use redis::aio::MultiplexedConnection;

use crate::support::registries::PATIENT;
use crate::support::server::Server;

/// What takes longer never comes.
const PATIENCE: Duration = Duration::from_secs(20);

type Calling = Pin<Box<dyn Future<Output = Result<Decision, Error>> + Send>>;

/// A server of one's own, whose commands are counted.
struct Counted {
    server: Server,
    connection: MultiplexedConnection,
}

impl Counted {
    async fn start() -> Self {
        let server = Server::start();
        let connection = server.connect().await;
        Counted { server, connection }
    }

    fn registry(&self) -> Registry {
        Registry::builder().deadline(PATIENT).connect_lazy(&self.server.url()).unwrap()
    }

    /// The microseconds of Redis.
    async fn time(&self) -> u128 {
        let mut connection = self.connection.clone();
        let (seconds, micros): (u128, u128) = redis::cmd("TIME").query_async(&mut connection).await.unwrap();
        seconds * 1_000_000 + micros
    }

    /// How many scripts were called.
    async fn calls(&self) -> u64 {
        let mut connection = self.connection.clone();
        let stats: String =
            redis::cmd("INFO").arg("commandstats").query_async(&mut connection).await.unwrap();
        let calls = |line: &str| line.split_once(":calls=")?.1.split(',').next()?.parse::<u64>().ok();
        let of_scripts = stats.lines().filter(|line| line.starts_with("cmdstat_eval"));
        of_scripts.filter_map(calls).sum()
    }

    /// Waits until so many scripts were called, and not one more.
    async fn reaches(&self, calls: u64) {
        let begin = Instant::now();
        let mut now = self.calls().await;
        while now < calls {
            assert!(begin.elapsed() < PATIENCE, "{now} scripts were called, and not {calls}");
            tokio::task::yield_now().await;
            now = self.calls().await;
        }
        assert_eq!(now, calls);
    }

    /// The only key that there is, as Redis holds it.
    async fn held(&self) -> Option<String> {
        let mut connection = self.connection.clone();
        let keys: Vec<String> = redis::cmd("KEYS").arg("*").query_async(&mut connection).await.unwrap();
        assert!(keys.len() <= 1, "{keys:?}");
        redis::cmd("GET").arg(keys.first()?).query_async(&mut connection).await.unwrap()
    }

    async fn forget(&self) {
        let mut connection = self.connection.clone();
        let () = redis::cmd("FLUSHDB").query_async(&mut connection).await.unwrap();
    }
}

fn acquire(limiter: &Limiter, cost: u64) -> Calling {
    let limiter = limiter.clone();
    Box::pin(async move { limiter.acquire((), cost).await })
}

fn poll(call: &mut Calling) -> Poll<Result<Decision, Error>> {
    call.as_mut().poll(&mut Context::from_waker(Waker::noop()))
}

/// Connects, and lets the server remember the scripts of this limiter.
async fn warm(limiter: &Limiter) {
    for _ in 0..2 {
        limiter.try_acquire("warm", 1).await.unwrap().refund().await.unwrap();
    }
    limiter.reset("warm").await.unwrap();
}
