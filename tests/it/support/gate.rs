//! A way to a server that can be closed and opened again, as a network fails and comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::server::Server;

/// Passes connections on while it is open.
pub(crate) struct Gate {
    url: String,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    is_closed: AtomicBool,
    closed: Notify,
}

impl Gate {
    /// An open way to this server. It ends with the runtime.
    pub(crate) async fn to(server: &Server) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let url = format!("redis://{}", listener.local_addr().expect("it is bound"));
        let server = server.url().trim_start_matches("redis://").to_owned();
        let state = Arc::new(State::default());
        let passing = Arc::clone(&state);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass(client, server.clone(), Arc::clone(&passing)));
            }
        });
        Gate { url, state }
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Cuts all connections, and those that are to come.
    pub(crate) fn close(&self) {
        self.state.is_closed.store(true, Ordering::SeqCst);
        self.state.closed.notify_waiters();
    }

    pub(crate) fn open(&self) {
        self.state.is_closed.store(false, Ordering::SeqCst);
    }
}

async fn pass(mut client: TcpStream, server: String, state: Arc<State>) {
    let closed = state.closed.notified();
    if state.is_closed.load(Ordering::SeqCst) {
        return;
    }
    let Ok(mut server) = TcpStream::connect(server).await else { return };
    tokio::select! {
        _ = copy_bidirectional(&mut client, &mut server) => {}
        () = closed => {}
    }
}
