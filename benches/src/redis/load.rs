//! Many tasks, or one, that repeat an operation on one thread, with one connection.

use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, cmd};
use tokio::runtime::{Builder, Runtime};
use tokio::task::LocalSet;

use super::server::Server;
use crate::machine::pin;

/// How many keys the operations use.
const KEYS: usize = 10_000;
const DURATION: Duration = Duration::from_millis(400);
/// How many calls of one task a latency is the median of.
const CALLS: usize = 2000;

/// One call, for the key with this number.
pub(crate) type Operation = Rc<dyn Fn(usize) -> Pin<Box<dyn Future<Output = ()>>>>;

pub(crate) fn operation<F: Future<Output = ()> + 'static>(call: impl Fn(usize) -> F + 'static) -> Operation {
    Rc::new(move |key| Box::pin(call(key)))
}

/// A server, and the thread that calls it.
pub(crate) struct Load {
    runtime: Runtime,
    pub(crate) connection: MultiplexedConnection,
    server: Server,
}

impl Load {
    pub(crate) fn new() -> Result<Self, String> {
        let server = Server::start()?;
        pin(None, 0);
        let runtime =
            Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
        let configuration = AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = runtime
            .block_on(async {
                Client::open(server.url())?.get_multiplexed_async_connection_with_config(&configuration).await
            })
            .map_err(|error| error.to_string())?;
        Ok(Load { runtime, connection, server })
    }

    pub(crate) fn url(&self) -> String {
        self.server.url()
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.address
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    /// Calls the operation once for each key.
    pub(crate) fn for_each_key(&self, operation: &Operation) {
        self.block_on(async {
            for key in 0..KEYS {
                operation(key).await;
            }
        });
    }

    /// Calls per second of so many tasks together.
    pub(crate) fn throughput(&self, tasks: usize, operation: &Operation) -> f64 {
        let start = Instant::now();
        let calls = self.drive(tasks, operation);
        calls as f64 / start.elapsed().as_secs_f64()
    }

    /// Microseconds of the server's processor time per call.
    pub(crate) fn server_time(&self, tasks: usize, operation: &Operation) -> f64 {
        let before = self.server_microseconds();
        let calls = self.drive(tasks, operation);
        (self.server_microseconds() - before) / calls as f64
    }

    /// The median duration of one call in microseconds, with nothing else in flight.
    pub(crate) fn latency(&self, operation: &Operation) -> f64 {
        let mut durations = self.block_on(async {
            let mut durations = Vec::with_capacity(CALLS);
            for call in 0..CALLS {
                let start = Instant::now();
                operation(scatter(call)).await;
                durations.push(start.elapsed());
            }
            durations
        });
        durations.sort();
        durations[CALLS / 2].as_secs_f64() * 1e6
    }

    fn drive(&self, tasks: usize, operation: &Operation) -> usize {
        let end = Instant::now() + DURATION;
        let task = |number: usize| {
            let operation = Rc::clone(operation);
            async move {
                let mut calls = 0;
                while Instant::now() < end {
                    operation(scatter(number * 7919 + calls)).await;
                    calls += 1;
                }
                calls
            }
        };
        LocalSet::new().block_on(&self.runtime, async {
            let running: Vec<_> = (0..tasks).map(|number| tokio::task::spawn_local(task(number))).collect();
            let mut calls = 0;
            for task in running {
                calls += task.await.expect("operations do not panic");
            }
            calls
        })
    }

    fn server_microseconds(&self) -> f64 {
        let mut connection = self.connection.clone();
        let info: String = self
            .block_on(async { cmd("INFO").arg("cpu").query_async(&mut connection).await })
            .expect("the server answers INFO");
        let used = |line: &str| {
            let seconds = line.strip_prefix("used_cpu_user:").or(line.strip_prefix("used_cpu_sys:"))?;
            seconds.trim().parse::<f64>().ok()
        };
        info.lines().filter_map(used).sum::<f64>() * 1e6
    }
}

/// Spreads the calls over the keys.
fn scatter(call: usize) -> usize {
    call.wrapping_mul(2_654_435_761) % KEYS
}
