//! A proxy before a server, which does to its connections what networks do.
//!
//! What it cannot do is to leave bytes unacknowledged: the system that it runs on takes them in every fault.

mod line;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use self::line::Line;
use super::server::ports;

/// What happens to all connections, those that are there and those that come.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    Pass,
    /// Everything takes so long, each way.
    Latency(Duration),
    /// Nothing passes, ends of connections neither. Afterwards everything does, late.
    Stall,
    /// Nothing passes, and nothing ever will on these connections, which stay open. Those that come afterwards work.
    BlackHole,
    /// The server gets every request, and nobody a reply.
    SwallowReplies,
    /// The next reply is lost with its connection. Everything else passes, and everything afterwards.
    SwallowNextThenReset,
    /// A byte at a time.
    Sliced,
}

/// Gone with all of its connections when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    wires: Arc<Wires>,
    lines: Arc<Mutex<JoinSet<()>>>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Begins to listen, and passes everything to this address.
    pub(crate) async fn to(target: impl Display) -> Proxy {
        let wires = Wires {
            target: Mutex::new(target.to_string()),
            now: watch::Sender::new(Now { fault: Fault::Pass, dead_below: 0 }),
            accepted: AtomicU64::new(0),
            open: Mutex::new(HashMap::new()),
        };
        let (listener, port) = loop {
            let port = ports::free();
            // Another process may take it first.
            if let Ok(listener) = TcpListener::bind(("127.0.0.1", port)).await {
                break (listener, port);
            }
        };
        let (lines, accepting) = (Arc::default(), Mutex::default());
        let proxy = Proxy { port, wires: Arc::new(wires), lines, accepting };
        proxy.accept(listener);
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Where the connections go that come from now on.
    pub(crate) fn set_target(&self, target: impl Display) {
        *lock(&self.wires.target) = target.to_string();
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.wires.now.send_modify(|now| {
            // Those that came during a black hole are as dead as those before it.
            if matches!(fault, Fault::BlackHole) || matches!(now.fault, Fault::BlackHole) {
                now.dead_below = self.accepted();
            }
            now.fault = fault;
        });
    }

    /// Resets every connection (RST), and returns when all are gone.
    pub(crate) async fn reset(&self) {
        let (gone, mut wait) = mpsc::channel(1);
        for orders in lock(&self.wires.open).values() {
            let _ = orders.send(Order::Reset(gone.clone()));
        }
        drop(gone);
        let _ = wait.recv().await;
    }

    /// Ends every connection towards the client, which can still send.
    pub(crate) fn half_close(&self) {
        for orders in lock(&self.wires.open).values() {
            let _ = orders.send(Order::HalfClose);
        }
    }

    /// Closes the listener, so that the system refuses new connections. Those that are there stay.
    pub(crate) async fn refuse(&self) {
        let accepting = lock(&self.accepting).take();
        if let Some(accepting) = accepting {
            accepting.abort();
            let _ = accepting.await;
        }
    }

    /// Listens again, on the same port.
    pub(crate) async fn listen(&self) {
        self.refuse().await;
        self.accept(TcpListener::bind(("127.0.0.1", self.port)).await.expect("the port is still ours"));
    }

    /// How many connections there have been.
    pub(crate) fn accepted(&self) -> u64 {
        self.wires.accepted.load(Ordering::SeqCst)
    }

    /// How many connections there are, dead ones too.
    pub(crate) fn open(&self) -> usize {
        lock(&self.wires.open).len()
    }

    fn accept(&self, listener: TcpListener) {
        let (wires, lines) = (Arc::clone(&self.wires), Arc::clone(&self.lines));
        let accepting = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let line = Line::begin(Arc::clone(&wires));
                let mut lines = lock(&lines);
                while lines.try_join_next().is_some() {}
                lines.spawn(line.carry(client));
            }
        });
        *lock(&self.accepting) = Some(accepting);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(accepting) = lock(&self.accepting).take() {
            accepting.abort();
        }
        // A line that is accepted just now is aborted with the set, which the accepting task is the last to hold.
        lock(&self.lines).abort_all();
    }
}

/// What the connections share.
#[derive(Debug)]
struct Wires {
    target: Mutex<String>,
    now: watch::Sender<Now>,
    accepted: AtomicU64,
    open: Mutex<HashMap<u64, mpsc::UnboundedSender<Order>>>,
}

#[derive(Clone, Copy, Debug)]
struct Now {
    fault: Fault,
    /// The connections before this one were there in a black hole.
    dead_below: u64,
}

#[derive(Debug)]
enum Order {
    /// With something to drop when it is done.
    Reset(mpsc::Sender<()>),
    HalfClose,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
