//! Registries of a test's own.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{Registry, Source};

use super::server::Server;

/// A deadline for tests that are about something else: on a busy machine they wait for Redis, and nobody decides otherwise.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

/// Runs a test on a registry in this process, and on one on the Redis that tests share, where every key it leaves behind
/// must go by itself.
pub(crate) async fn on_each_registry(test: impl AsyncFn(Registry, Source)) {
    test(Registry::in_memory(), Source::Memory).await;

    let server = Server::shared();
    let namespace = namespace();
    test(in_namespace(&server, &namespace), Source::Redis).await;
    let mut connection = server.connect().await;
    let keys: Vec<String> = redis::cmd("KEYS")
        .arg(format!("{namespace}:*"))
        .query_async(&mut connection)
        .await
        .expect("an answer");
    for key in keys {
        let ttl: i64 = redis::cmd("PTTL").arg(&key).query_async(&mut connection).await.expect("an answer");
        assert!(ttl > 0 || ttl == -2, "{key} has no expiry");
    }
}

/// A registry on this server that shares nothing with others.
pub(crate) fn on(server: &Server) -> Registry {
    in_namespace(server, &namespace())
}

fn in_namespace(server: &Server, namespace: &str) -> Registry {
    let builder = Registry::builder().namespace(namespace).deadline(PATIENT);
    builder.connect_lazy(&server.url()).expect("the URL is right")
}

pub(crate) fn namespace() -> String {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    format!("r{}", NEXT.fetch_add(1, Ordering::Relaxed))
}
