//! Registries of a test's own.

use ratelimits::{Registry, Source};

use super::server::Server;

/// Runs a test on a registry in this process, and on one on the Redis that tests share.
pub(crate) async fn on_each_registry(test: impl AsyncFn(Registry, Source)) {
    test(Registry::in_memory(), Source::Memory).await;
    let server = Server::shared();
    test(on(&server), Source::Redis).await;
}

/// A registry on this server that shares nothing with others.
pub(crate) fn on(server: &Server) -> Registry {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let namespace = format!("r{}", NEXT.fetch_add(1, Ordering::Relaxed));
    Registry::builder().namespace(namespace).connect_lazy(&server.url()).expect("the URL is right")
}
