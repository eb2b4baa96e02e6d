//! Suggested numbers beside overrides and Redis.

use std::time::{Duration, Instant};

use ratelimits::observe::{NoSuggestion, Suggestions};
use ratelimits::{FixedWindow, Registry, RegistryBuilder};

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;

const PERIOD: Duration = Duration::from_millis(10);

const WINDOW: FixedWindow = FixedWindow::new(7, PERIOD);

fn builder(suggestions: &Suggestions) -> RegistryBuilder {
    Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE).observer(suggestions.observer())
}

/// Makes as many calls as tell numbers, each of the next of so many keys. Returns why there are none.
async fn reason(suggestions: &Suggestions, registry: &Registry, keys: u64) -> NoSuggestion {
    let limiter = registry.limiter("calls", WINDOW).unwrap();
    let start = Instant::now();
    for call in 0.. {
        _ = limiter.try_acquire(call % keys).await;
        if call > 20_000 && start.elapsed() > Duration::from_millis(110) {
            break;
        }
    }
    suggestions.list()[0].smallest.unwrap_err()
}

#[tokio::test]
async fn numbers_are_tried_around_those_that_are_written() {
    let file = std::env::temp_dir().join(format!("ratelimits-suggestions-{}.toml", std::process::id()));
    std::fs::write(&file, "[calls]\nlimit = 1000000\n").unwrap();
    let suggestions = Suggestions::new();
    let registry = builder(&suggestions).overrides(&file).in_memory();
    let more = FixedWindow::new(56, PERIOD).into();
    assert_eq!(reason(&suggestions, &registry, 1).await, NoSuggestion::More(more));
    std::fs::remove_file(file).unwrap();
}

#[tokio::test]
async fn calls_of_other_processes_are_missing_with_redis() {
    let (server, suggestions) = (Server::shared(), Suggestions::new());
    let registry = builder(&suggestions).connect_lazy(&server.url()).unwrap();
    let unknown = NoSuggestion::OtherProcesses { at_least: Some(FixedWindow::new(1, PERIOD).into()) };
    assert_eq!(reason(&suggestions, &registry, 30_000).await, unknown);
}
