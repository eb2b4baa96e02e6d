//! A registry on a server that fails and recovers. The server admits every call.

use std::time::Duration;

use ratelimits::{DecidedBy, FixedWindow, Limiter, Registry, RegistryBuilder};
use tokio::time::sleep;

use crate::faulty_server::{Fault, FaultyServer};

pub(crate) struct Failing {
    pub(crate) server: FaultyServer,
    pub(crate) registry: Registry,
    pub(crate) limiter: Limiter,
}

impl Failing {
    /// Starts with a limiter of this name.
    pub(crate) fn start(builder: RegistryBuilder, name: &str) -> Self {
        let server = FaultyServer::new(Fault::None);
        let registry = builder.over(server.clone());
        // The window of the server's replies.
        let limiter = registry.limiter(name, FixedWindow::new(100, Duration::from_secs(86_400))).unwrap();
        Failing { server, registry, limiter }
    }

    pub(crate) async fn fail(&self) {
        self.server.set(Fault::Refused);
        self.server.hang_up();
        self.until_decided_by(DecidedBy::Local).await;
    }

    pub(crate) async fn recover(&self) {
        self.server.set(Fault::None);
        self.until_decided_by(DecidedBy::Redis).await;
    }

    async fn until_decided_by(&self, source: DecidedBy) {
        while self.limiter.peek("b").await.unwrap().source != source {
            sleep(Duration::from_millis(10)).await;
        }
    }
}
