//! What observers are told where Redis fails.

use std::time::Duration;

use ratelimits::{DecidedBy, Error, Registry, count_limit};

use super::{Seen, repeat};
use crate::support::log_capture::LogCapture;
use crate::support::registries::namespace;
use crate::support::server::Server;
use crate::support::until::until;

#[count_limit(10, "1h", key = key, name = "lost.window", notify_at = 0.8, registry = registry)]
async fn window(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

/// A process that decides by itself knows little of what others have used.
#[tokio::test]
async fn outages_tell_nothing() {
    let (server, seen) = (Server::start(), Seen::default());
    let registry = seen.builder().deadline(Duration::from_secs(5)).connect_lazy(&server.url()).unwrap();
    assert_eq!(repeat(7, async || window(&registry, 1).await).await, 7);
    server.kill();
    assert_eq!(repeat(12, async || window(&registry, 1).await).await, 10);
    assert!(seen.0.lock().unwrap().told.is_empty());

    server.restart().await;
    let mut key = 100;
    until("Redis decides again", super::WITHIN, async || {
        key += 1;
        window(&registry, key).await.map_err(|error| error.to_string())?;
        match registry.store_health().healthy {
            true => Ok(()),
            false => Err("not yet".to_owned()),
        }
    })
    .await;
    assert!(repeat(12, async || window(&registry, 3).await).await >= 8);
    let told = seen.take(&registry).await;
    assert!(told.iter().filter(|told| told.key == "3").count() == 1, "{told:?}");
    assert!(told.iter().all(|told| told.source == Some(DecidedBy::Redis)));
}

/// Its call goes ahead all the same.
#[tokio::test]
async fn foreign_values_in_place_of_marks_are_logged() {
    let (log, server, namespace) = (LogCapture::default(), Server::shared(), namespace());
    let _guard = tracing::subscriber::set_default(log.clone());
    let seen = Seen::default();
    let registry = seen.builder_in(&namespace).connect_lazy(&server.url()).unwrap();
    assert_eq!(repeat(8, async || window(&registry, 1).await).await, 8);
    assert_eq!(seen.take(&registry).await.len(), 1);
    let marks: Vec<String> = server.command(&["KEYS", &format!("{namespace}::lost.window:near:*")]).await;
    assert_eq!(marks.len(), 1, "{marks:?}");
    let _: () = server.command(&["SET", &marks[0], "foreign"]).await;

    // Another process does not know that the key was told.
    let seen = Seen::default();
    let registry = seen.builder_in(&namespace).connect_lazy(&server.url()).unwrap();
    assert_eq!(repeat(3, async || window(&registry, 1).await).await, 2);
    assert_eq!(seen.take(&registry).await, []);
    let log = log.text();
    assert!(log.contains("failed to tell observers of keys that near their limit"), "{log}");
}
