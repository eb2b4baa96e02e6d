//! Registries that share nothing with other tests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{DecidedBy, Registry};

use super::server::Server;

/// A deadline that Redis meets on a busy machine too, so that no call falls back.
pub(crate) const LONG_DEADLINE: Duration = Duration::from_secs(30);

/// Runs a test on a registry in process, and on one on the shared Redis, where every key that it leaves must expire.
pub(crate) async fn on_each_registry(test: impl AsyncFn(Registry, DecidedBy)) {
    test(Registry::in_memory(), DecidedBy::Memory).await;

    let server = Server::shared();
    let namespace = namespace();
    test(in_namespace(&server, &namespace), DecidedBy::Redis).await;
    let keys: Vec<String> = server.command(&["KEYS", &format!("{namespace}:*")]).await;
    for key in keys {
        let ttl: i64 = server.command(&["PTTL", &key]).await;
        assert!(ttl > 0 || ttl == -2, "{key} has no expiry");
    }
}

/// A registry in its own namespace on this server.
pub(crate) fn on(server: &Server) -> Registry {
    in_namespace(server, &namespace())
}

fn in_namespace(server: &Server, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
    builder.connect_lazy(&server.url()).expect("the URL is valid")
}

/// A namespace that no other test of this process uses.
pub(crate) fn namespace() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("r{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
