//! Many tasks, or one, that repeat an operation on one thread, with one connection.

use std::cell::Cell;
use std::net::SocketAddr;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, cmd};
use tokio::runtime::{Builder, Runtime};
use tokio::task::{LocalSet, spawn_local, yield_now};
use tokio::time::sleep;

use super::server::Server;
use crate::machine::{pin, thread_time};

/// How many keys the operations use.
pub(super) const KEYS: usize = 10_000;
/// How long one measurement takes.
pub(crate) const DURATION: Duration = Duration::from_millis(300);
/// How many calls of one task a latency is the median of.
const CALLS: usize = 2000;

/// After how many calls a task lets others run, because calls that are answered at once never do.
const CALLS_AT_ONCE: u64 = 32;

/// One call, for the key with this number.
pub(crate) type Operation = Rc<dyn Fn(usize) -> Pin<Box<dyn Future<Output = ()>>>>;

pub(crate) fn operation<F: Future<Output = ()> + 'static>(call: impl Fn(usize) -> F + 'static) -> Operation {
    Rc::new(move |key| Box::pin(call(key)))
}

/// A server, and the thread that calls it with many tasks.
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

    /// What so many tasks use together that repeat the operation.
    pub(crate) fn measure(&self, tasks: usize, operation: &Operation) -> Usage {
        let server = self.server_time();
        let (client, start) = (thread_time(), Instant::now());
        let calls = self.drive(tasks, operation);
        let (client, wall) = (thread_time() - client, start.elapsed());
        Usage { calls, wall, client, server: self.server_time() - server }
    }

    /// The same, with what the server is sent later because of these calls.
    pub(super) fn measure_all(&self, tasks: usize, operation: &Operation) -> Usage {
        let server = self.server_time();
        let usage = self.measure(tasks, operation);
        self.block_on(async { sleep(DURATION).await });
        Usage { server: self.server_time() - server, ..usage }
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

    /// Returns the number of calls.
    fn drive(&self, tasks: usize, operation: &Operation) -> u64 {
        let ended = Rc::new(Cell::new(false));
        let task = |number: usize| {
            let (operation, ended) = (Rc::clone(operation), Rc::clone(&ended));
            async move {
                let mut calls = 0_u64;
                while !ended.get() {
                    operation(scatter(number * 7919 + calls as usize)).await;
                    calls += 1;
                    if calls.is_multiple_of(CALLS_AT_ONCE) {
                        yield_now().await;
                    }
                }
                calls
            }
        };
        LocalSet::new().block_on(&self.runtime, async {
            let running: Vec<_> = (0..tasks).map(|number| spawn_local(task(number))).collect();
            sleep(DURATION).await;
            ended.set(true);
            let mut calls = 0;
            for task in running {
                calls += task.await.expect("operations do not panic");
            }
            calls
        })
    }

    /// The processor time that the server has used.
    fn server_time(&self) -> Duration {
        let mut connection = self.connection.clone();
        let info: String = self
            .block_on(async { cmd("INFO").arg("cpu").query_async(&mut connection).await })
            .expect("the server answers INFO");
        let used = |line: &str| {
            let seconds = line.strip_prefix("used_cpu_user:").or(line.strip_prefix("used_cpu_sys:"))?;
            seconds.trim().parse().ok().map(Duration::from_secs_f64)
        };
        info.lines().filter_map(used).sum()
    }
}

/// What calls have taken: time, and processor time of this thread and of the server.
pub(crate) struct Usage {
    calls: u64,
    wall: Duration,
    client: Duration,
    server: Duration,
}

impl Usage {
    /// Thousands of calls per second by the clock on the wall.
    pub(crate) fn throughput(&self) -> f64 {
        self.calls as f64 / self.wall.as_secs_f64() / 1e3
    }

    /// Thousands of calls per second of the server's processor time: the throughput of a server that is never idle. Other
    /// programs on the machine hardly change it.
    pub(super) fn calls_per_server_second(&self) -> f64 {
        self.calls as f64 / self.server.as_secs_f64() / 1e3
    }

    /// The server's processor time per call.
    pub(super) fn server_microseconds(&self) -> f64 {
        self.server.as_secs_f64() * 1e6 / self.calls as f64
    }

    /// This thread's processor time per call.
    pub(super) fn client_microseconds(&self) -> f64 {
        self.client.as_secs_f64() * 1e6 / self.calls as f64
    }
}

/// Spreads the calls over the keys.
fn scatter(call: usize) -> usize {
    call.wrapping_mul(2_654_435_761) % KEYS
}
