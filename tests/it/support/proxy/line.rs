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

use super::{Fault, Order, Wires, lock};

pub(super) struct Line {
    number: u64,
    wires: Arc<Wires>,
    orders: mpsc::UnboundedReceiver<Order>,
}

/// Something that was read: bytes, or none at the end of the connection.
struct Chunk {
    read_at: Instant,
    bytes: Vec<u8>,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    ToServer,
    ToClient,
}

enum Fate {
    Pass,
    PassSliced,
    /// Bytes are lost, the end of the connection passes.
    Swallowed,
    /// Nothing passes, ever.
    Lost,
    Reset,
}

impl Line {
    pub(super) fn begin(wires: Arc<Wires>) -> Line {
        let (sender, orders) = mpsc::unbounded_channel();
        let number = wires.accepted.fetch_add(1, Ordering::SeqCst);
        lock(&wires.open).insert(number, sender);
        Line { number, wires, orders }
    }

    /// Until either side ends the connection, and the other one may know.
    pub(super) async fn carry(mut self, mut client: TcpStream) {
        let half_close = Notify::new();
        let reset = {
            let wires = Arc::clone(&self.wires);
            let mut pumps = pin!(pump(self.number, &wires, &mut client, &half_close));
            loop {
                tokio::select! {
                    ended = &mut pumps => break ended.is_err_and(|error| is_reset(&error)).then_some(None),
                    order = self.orders.recv() => match order {
                        Some(Order::HalfClose) => half_close.notify_one(),
                        Some(Order::Reset(gone)) => break Some(Some(gone)),
                        None => break None,
                    },
                }
            }
        };
        if reset.is_some() {
            let _ = client.set_zero_linger();
        }
        drop(client);
        // Before whoever ordered the reset knows that it is done, which drops with `reset`.
        drop(self);
        drop(reset);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        lock(&self.wires.open).remove(&self.number);
    }
}

async fn pump(number: u64, wires: &Wires, client: &mut TcpStream, half_close: &Notify) -> io::Result<()> {
    if matches!(wires.now.borrow().fault, Fault::BlackHole) {
        // Not even whether the server is there can be seen.
        return tokio::io::copy(client, &mut tokio::io::sink()).await.map(drop);
    }
    let never = Notify::new();
    let target = lock(&wires.target).clone();
    let mut server = TcpStream::connect(target).await?;
    client.set_nodelay(true)?;
    server.set_nodelay(true)?;
    let (from_client, to_client) = client.split();
    let (from_server, to_server) = server.split();
    tokio::select! {
        ended = one_way(number, wires, Way::ToServer, from_client, to_server, &never) => ended,
        ended = one_way(number, wires, Way::ToClient, from_server, to_client, half_close) => ended,
    }
}

async fn one_way(
    number: u64,
    wires: &Wires,
    way: Way,
    from: ReadHalf<'_>,
    to: WriteHalf<'_>,
    half_close: &Notify,
) -> io::Result<()> {
    // What does not pass yet is not read for ever: the sender notices, as it does with a network that stalls.
    let (queue, queued) = mpsc::channel(64);
    let mut writing = pin!(write(number, wires, way, queued, to, half_close));
    tokio::select! {
        ended = &mut writing => ended,
        () = read(from, queue) => writing.await,
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

async fn write(
    number: u64,
    wires: &Wires,
    way: Way,
    mut queued: mpsc::Receiver<Chunk>,
    mut to: WriteHalf<'_>,
    half_close: &Notify,
) -> io::Result<()> {
    let mut closed = false;
    loop {
        let chunk = tokio::select! {
            chunk = queued.recv() => chunk,
            () = half_close.notified() => {
                closed = true;
                to.shutdown().await?;
                continue;
            }
        };
        let Some(chunk) = chunk else { return Ok(()) };
        let fate = fate(number, wires, way, &chunk).await;
        match fate {
            Fate::Reset => return Err(io::ErrorKind::ConnectionReset.into()),
            // The one side never learns that the other has gone. But where the client has gone, nobody is left to see.
            Fate::Lost if chunk.bytes.is_empty() && way == Way::ToClient => std::future::pending().await,
            Fate::Swallowed | Fate::Lost => {}
            Fate::Pass | Fate::PassSliced if closed => {}
            Fate::Pass => to.write_all(&chunk.bytes).await?,
            Fate::PassSliced => {
                for byte in &chunk.bytes {
                    to.write_all(std::slice::from_ref(byte)).await?;
                    tokio::task::yield_now().await;
                }
            }
        }
        if chunk.bytes.is_empty() {
            return Ok(());
        }
    }
}

/// What becomes of a chunk, once that can be said.
async fn fate(number: u64, wires: &Wires, way: Way, chunk: &Chunk) -> Fate {
    let mut changes = wires.now.subscribe();
    loop {
        let now = *changes.borrow_and_update();
        if number < now.dead_below {
            return Fate::Lost;
        }
        match now.fault {
            Fault::Pass => return Fate::Pass,
            Fault::Sliced => return Fate::PassSliced,
            Fault::BlackHole => return Fate::Lost,
            Fault::SwallowReplies if way == Way::ToClient => return Fate::Swallowed,
            Fault::SwallowNextThenReset if way == Way::ToClient && !chunk.bytes.is_empty() => {
                if claimed(wires) {
                    return Fate::Reset;
                }
            }
            Fault::SwallowReplies | Fault::SwallowNextThenReset => return Fate::Pass,
            Fault::Latency(latency) => tokio::select! {
                () = sleep_until(chunk.read_at + latency) => return Fate::Pass,
                _ = changes.changed() => {}
            },
            Fault::Stall => drop(changes.changed().await),
        }
    }
}

/// Whether this is the one reply that is swallowed.
fn claimed(wires: &Wires) -> bool {
    wires.now.send_if_modified(|now| {
        let claimed = matches!(now.fault, Fault::SwallowNextThenReset);
        if claimed {
            now.fault = Fault::Pass;
        }
        claimed
    })
}

fn is_reset(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::ConnectionReset
}
