//! One connection through the proxy.

use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::sync::{Notify, mpsc};
use tokio::time::{Instant, sleep_until};

use super::{Control, Fault, Shared, lock};

pub(super) struct Connection {
    id: u64,
    shared: Arc<Shared>,
    control: mpsc::UnboundedReceiver<Control>,
}

/// What one read returned: bytes, or none at the end of the stream.
struct Chunk {
    read_at: Instant,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Direction {
    ToServer,
    ToClient,
}

/// What happens to a chunk.
enum Action {
    Forward,
    ForwardSliced,
    /// Drops bytes, but forwards the end of the stream.
    Swallow,
    /// Drops bytes and the end of the stream.
    Lose,
    Reset,
}

impl Connection {
    pub(super) fn register(shared: Arc<Shared>) -> Connection {
        let (sender, control) = mpsc::unbounded_channel();
        let id = shared.accepted.fetch_add(1, Ordering::SeqCst);
        lock(&shared.open).insert(id, sender);
        Connection { id, shared, control }
    }

    /// Forwards until either side closes the connection and the fault lets the other side see it.
    pub(super) async fn forward(mut self, mut client: TcpStream) {
        let half_close = Notify::new();
        let reset = {
            let shared = Arc::clone(&self.shared);
            let mut pumps = pin!(pump(self.id, &shared, &mut client, &half_close));
            loop {
                tokio::select! {
                    ended = &mut pumps => break ended.is_err_and(|error| is_reset(&error)).then_some(None),
                    control = self.control.recv() => match control {
                        Some(Control::HalfClose) => half_close.notify_one(),
                        Some(Control::Reset(done)) => break Some(Some(done)),
                        None => break None,
                    },
                }
            }
        };
        if reset.is_some() {
            let _ = client.set_zero_linger();
        }
        drop(client);
        // Deregistered before `reset` reports completion.
        drop(self);
        drop(reset);
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        lock(&self.shared.open).remove(&self.id);
    }
}

async fn pump(id: u64, shared: &Shared, client: &mut TcpStream, half_close: &Notify) -> io::Result<()> {
    if matches!(shared.condition.borrow().fault, Fault::BlackHole) {
        // The client cannot even tell whether the server is up.
        return tokio::io::copy(client, &mut tokio::io::sink()).await.map(drop);
    }
    let target = lock(&shared.target).clone();
    let mut server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    let never = Notify::new();
    let to_server = Pump { id, shared, direction: Direction::ToServer, half_close: &never, to: to_server };
    let to_client = Pump { id, shared, direction: Direction::ToClient, half_close, to: to_client };
    tokio::select! {
        ended = to_server.run(from_client) => ended,
        ended = to_client.run(from_server) => ended,
    }
}

/// One direction of a connection.
struct Pump<'a> {
    id: u64,
    shared: &'a Shared,
    direction: Direction,
    half_close: &'a Notify,
    to: WriteHalf<'a>,
}

impl Pump<'_> {
    async fn run(self, from: ReadHalf<'_>) -> io::Result<()> {
        // Bounded, so that the sender notices a stall as it does on a network.
        let (queue, queued) = mpsc::channel(64);
        let mut writing = pin!(self.write(queued));
        tokio::select! {
            ended = &mut writing => ended,
            () = read(from, queue) => writing.await,
        }
    }

    async fn write(mut self, mut queued: mpsc::Receiver<Chunk>) -> io::Result<()> {
        let mut closed = false;
        loop {
            let chunk = tokio::select! {
                chunk = queued.recv() => chunk,
                () = self.half_close.notified() => {
                    closed = true;
                    self.to.shutdown().await?;
                    continue;
                }
            };
            let Some(chunk) = chunk else { return Ok(()) };
            match self.action(&chunk).await {
                Action::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
                // The client never learns that the server closed. A client that closed needs no more.
                Action::Lose if chunk.bytes.is_empty() && self.direction == Direction::ToClient => {
                    std::future::pending().await
                }
                Action::Swallow | Action::Lose => {}
                Action::Forward | Action::ForwardSliced if closed => {}
                Action::Forward => self.to.write_all(&chunk.bytes).await?,
                Action::ForwardSliced => {
                    for byte in &chunk.bytes {
                        self.to.write_all(std::slice::from_ref(byte)).await?;
                        tokio::task::yield_now().await;
                    }
                }
            }
            if chunk.bytes.is_empty() {
                return Ok(());
            }
        }
    }

    /// Waits for as long as the fault holds the chunk back.
    async fn action(&self, chunk: &Chunk) -> Action {
        let mut changes = self.shared.condition.subscribe();
        loop {
            let condition = *changes.borrow_and_update();
            if self.id < condition.dead_below {
                return Action::Lose;
            }
            match condition.fault {
                Fault::Pass => return Action::Forward,
                Fault::Sliced => return Action::ForwardSliced,
                Fault::BlackHole => return Action::Lose,
                Fault::SwallowReplies if self.direction == Direction::ToClient => return Action::Swallow,
                Fault::SwallowNextThenReset
                    if self.direction == Direction::ToClient && !chunk.bytes.is_empty() =>
                {
                    if claim(self.shared) {
                        return Action::Reset;
                    }
                }
                Fault::SwallowReplies | Fault::SwallowNextThenReset => return Action::Forward,
                Fault::Latency(latency) => tokio::select! {
                    () = sleep_until(chunk.read_at + latency) => return Action::Forward,
                    _ = changes.changed() => {}
                },
                Fault::Stall => drop(changes.changed().await),
            }
        }
    }
}

async fn read(mut from: ReadHalf<'_>, queue: mpsc::Sender<Chunk>) {
    loop {
        let mut bytes = vec![0; 16 << 10];
        let length = from.read(&mut bytes).await.unwrap_or(0);
        bytes.truncate(length);
        let sent = queue.send(Chunk { read_at: Instant::now(), bytes }).await;
        if length == 0 || sent.is_err() {
            return;
        }
    }
}

/// Returns true for the one reply that is swallowed.
fn claim(shared: &Shared) -> bool {
    shared.condition.send_if_modified(|condition| {
        let claimed = matches!(condition.fault, Fault::SwallowNextThenReset);
        if claimed {
            condition.fault = Fault::Pass;
        }
        claimed
    })
}

fn is_reset(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}
