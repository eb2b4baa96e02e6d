//! Connections: how many there are, what becomes of a closed one, and what errors say about them.

use std::time::Duration;

use ratelimits::{DecidedBy, FixedWindow, OnStoreError, Registry};

use super::{MINUTE, builder};
use crate::support::proxy::{Fault, Proxy};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

#[tokio::test]
async fn connections_are_named_for_operators() {
    let server = Server::start();
    let registry = builder().connect(&server.url()).await.unwrap();
    let clients: String = server.command(&["CLIENT", "LIST"]).await;
    assert_eq!(clients.matches(" name=ratelimits ").count(), 1, "{clients}");
    drop(registry);
}

/// RESP2 has no message for it, and redis-rs reports it only with RESP3.
#[tokio::test]
async fn first_call_after_an_idle_disconnect_is_decided() {
    let server = Server::start();
    for protocol in ["resp2", "resp3"] {
        let builder = Registry::builder().namespace(protocol).on_store_error(OnStoreError::Deny);
        let url = format!("{}?protocol={protocol}", server.url());
        let registry = builder.deadline(LONG_DEADLINE).connect_lazy(&url).unwrap();
        let limiter = registry.limiter("idle", FixedWindow::new(100, MINUTE)).unwrap();
        for call in 1..=10 {
            let decision = limiter.try_acquire("a").await;
            let remaining = decision.unwrap_or_else(|error| panic!("{protocol}: {error}")).remaining;
            assert_eq!(remaining, 100 - call, "{protocol}: charged once");
            server.kill_clients().await;
            // Idle, so that the client learns of it.
            tokio::time::sleep(Duration::from_millis(150)).await;
        }
    }
}

#[tokio::test]
async fn check_for_an_idle_disconnect_sends_nothing() {
    let server = Server::start();
    let registry = Registry::builder().deadline(LONG_DEADLINE);
    let registry = registry.connect(&format!("{}?protocol=resp2", server.url())).await.unwrap();
    let limiter = registry.limiter("idle", FixedWindow::new(1000, MINUTE)).unwrap();
    let pings = async || -> Option<String> {
        let stats: String = server.command(&["INFO", "commandstats"]).await;
        let line = stats.lines().find(|line| line.starts_with("cmdstat_ping:"))?;
        line.split(',').next().map(str::to_owned)
    };
    let before = pings().await;
    for _ in 0..100 {
        limiter.try_acquire("a").await.unwrap();
    }
    assert_eq!(pings().await, before);
}

/// A process may have a registry for each tenant.
#[tokio::test]
async fn registries_on_one_server_share_its_connection() {
    let server = Server::start();
    let builder = || Registry::builder().deadline(LONG_DEADLINE);
    let connected = async || -> usize {
        let clients: String = server.command(&["CLIENT", "LIST"]).await;
        clients.matches(" name=ratelimits ").count()
    };
    let mut registries = Vec::new();
    for tenant in 0..50 {
        let registry = builder().namespace(format!("tenant-{tenant}"));
        let registry = if tenant % 2 == 0 {
            registry.connect(&server.url()).await
        } else {
            registry.connect_lazy(&server.url())
        };
        let registry = registry.unwrap();
        let limiter = registry.limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
        let decision = limiter.try_acquire(()).await.unwrap();
        assert_eq!(decision.source, DecidedBy::Redis);
        registries.push(registry);
    }
    assert_eq!(connected().await, 1);

    // Calls with another deadline or login have their own.
    let url = server.url();
    let others = [
        builder().deadline(2 * LONG_DEADLINE).connect(&url).await.unwrap(),
        builder().connect(&format!("{url}/1")).await.unwrap(),
        builder().connect(&format!("{url}?protocol=resp2")).await.unwrap(),
    ];
    assert_eq!(connected().await, 4);

    drop((registries, others));
    until("unused connections close", Duration::from_secs(10), async || match connected().await {
        0 => Ok(()),
        open => Err(format!("{open} are open")),
    })
    .await;
}

#[tokio::test]
async fn errors_of_calls_say_where_and_why() {
    let server = Server::start();
    let registry =
        builder().on_store_error(OnStoreError::Deny).connect_lazy(&server.url_as("ann", "secret")).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    let error = limiter.try_acquire(()).await.unwrap_err().to_string();
    assert!(error.contains("WRONGPASS") && error.contains(&server.address()), "{error}");
    assert!(!error.contains("ann") && !error.contains("secret"), "{error}");
    server.pause();
    let registry = builder().deadline(Duration::from_millis(50)).on_store_error(OnStoreError::Deny);
    let limiter =
        registry.connect_lazy(&server.url()).unwrap().limiter("a", FixedWindow::new(1, MINUTE)).unwrap();
    let error = limiter.try_acquire(()).await.unwrap_err().to_string();
    assert!(error.contains("deadline") && error.contains(&server.address()), "{error}");
}

#[tokio::test]
async fn lost_connection_is_named() {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let registry = builder().on_store_error(OnStoreError::Deny).connect(&proxy.url()).await.unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(10, MINUTE)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    proxy.set(Fault::SwallowNextThenReset);
    let error = limiter.try_acquire(()).await.unwrap_err().to_string();
    assert!(error.contains("was lost") && error.contains(&proxy.address()), "{error}");
}

#[tokio::test]
async fn registries_connect_as_soon_as_the_server_is_back() {
    let server = Server::start();
    let builder = || Registry::builder().deadline(Duration::from_millis(50));
    let registry = builder().on_store_error(OnStoreError::Allow).connect(&server.url()).await.unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(100, MINUTE)).unwrap();
    server.pause();
    for _ in 0..20 {
        assert_eq!(limiter.try_acquire(()).await.unwrap().source, DecidedBy::Allowed);
    }
    server.resume();
    builder().connect(&server.url()).await.unwrap();
}
