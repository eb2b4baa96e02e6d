//! A proxy in front of a server, which injects network faults.
//!
//! It cannot leave bytes unacknowledged: the operating system acknowledges them under every fault.

mod connection;

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet};

use self::connection::Connection;
use super::server::ports;

/// What happens on all connections, present and new.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// No fault.
    Pass,
    /// A delay, each way.
    Latency(Duration),
    /// Nothing passes, not even the end of a connection. Afterwards everything passes, late.
    Stall,
    /// Nothing passes, and nothing ever will on these connections, which stay open. New ones work afterwards.
    BlackHole,
    /// Requests pass, replies are lost.
    SwallowReplies,
    /// The next reply is lost and its connection reset, once.
    SwallowNextThenReset,
    /// One byte at a time.
    Sliced,
}

/// Closes all of its connections when it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    port: u16,
    shared: Arc<Shared>,
    connections: Arc<Mutex<JoinSet<()>>>,
    acceptor: Mutex<Option<JoinHandle<()>>>,
}

impl Proxy {
    /// Starts to listen, and forwards to this address.
    pub(crate) async fn to(target: impl Display) -> Proxy {
        let shared = Shared {
            target: Mutex::new(target.to_string()),
            condition: watch::Sender::new(Condition { fault: Fault::Pass, dead_below: 0 }),
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
        let (connections, acceptor) = (Arc::default(), Mutex::default());
        let proxy = Proxy { port, shared: Arc::new(shared), connections, acceptor };
        proxy.accept(listener);
        proxy
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sets the target of new connections.
    pub(crate) fn set_target(&self, target: impl Display) {
        *lock(&self.shared.target) = target.to_string();
    }

    pub(crate) fn set(&self, fault: Fault) {
        self.shared.condition.send_modify(|condition| {
            // Connections made during a black hole are as dead as those before it.
            if matches!(fault, Fault::BlackHole) || matches!(condition.fault, Fault::BlackHole) {
                condition.dead_below = self.accepted();
            }
            condition.fault = fault;
        });
    }

    /// Resets every connection (RST), and returns when all are closed.
    pub(crate) async fn reset(&self) {
        let (done, mut wait) = mpsc::channel(1);
        for control in lock(&self.shared.open).values() {
            let _ = control.send(Control::Reset(done.clone()));
        }
        drop(done);
        let _ = wait.recv().await;
    }

    /// Closes every connection towards the client, which can still send.
    pub(crate) fn half_close(&self) {
        for control in lock(&self.shared.open).values() {
            let _ = control.send(Control::HalfClose);
        }
    }

    /// Closes the listener, so that the system refuses new connections. Open ones stay.
    pub(crate) async fn refuse(&self) {
        let acceptor = lock(&self.acceptor).take();
        if let Some(acceptor) = acceptor {
            acceptor.abort();
            let _ = acceptor.await;
        }
    }

    /// Refuses new connections and resets the open ones.
    pub(crate) async fn cut(&self) {
        self.refuse().await;
        self.reset().await;
    }

    /// Listens again, on the same port.
    pub(crate) async fn listen(&self) {
        self.refuse().await;
        self.accept(TcpListener::bind(("127.0.0.1", self.port)).await.expect("the port is still free"));
    }

    /// The number of connections accepted so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.shared.accepted.load(Ordering::SeqCst)
    }

    /// The number of open connections, including dead ones.
    pub(crate) fn open(&self) -> usize {
        lock(&self.shared.open).len()
    }

    fn accept(&self, listener: TcpListener) {
        let (shared, connections) = (Arc::clone(&self.shared), Arc::clone(&self.connections));
        let acceptor = tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let connection = Connection::register(Arc::clone(&shared));
                let mut connections = lock(&connections);
                while connections.try_join_next().is_some() {}
                connections.spawn(connection.forward(client));
            }
        });
        *lock(&self.acceptor) = Some(acceptor);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(acceptor) = lock(&self.acceptor).take() {
            acceptor.abort();
        }
        // A connection accepted right now is aborted with the set, which the acceptor is the last to hold.
        lock(&self.connections).abort_all();
    }
}

/// The state that all connections share.
#[derive(Debug)]
struct Shared {
    target: Mutex<String>,
    condition: watch::Sender<Condition>,
    accepted: AtomicU64,
    open: Mutex<HashMap<u64, mpsc::UnboundedSender<Control>>>,
}

#[derive(Clone, Copy, Debug)]
struct Condition {
    fault: Fault,
    /// Connections with lower ids were open during a black hole.
    dead_below: u64,
}

#[derive(Debug)]
enum Control {
    /// The sender is dropped once the connection is closed.
    Reset(mpsc::Sender<()>),
    HalfClose,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
