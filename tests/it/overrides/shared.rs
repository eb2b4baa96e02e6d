//! What many registries with overrides cost.

use std::fs;

use ratelimits::{FixedWindow, Registry};

use super::{DAY, WITHIN, in_force};
use crate::support::registries::LONG_DEADLINE;
use crate::support::server::Server;
use crate::support::until::until;

const TENANTS: usize = 1000;
const NAME: &str = "shared.limiter";

fn builder(namespace: &str) -> ratelimits::RegistryBuilder {
    Registry::builder().deadline(LONG_DEADLINE).namespace(namespace).overrides_in_redis()
}

/// Returns the number of threads of this process that look for overrides. Linux cuts off their names.
fn threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.filter_map(|task| fs::read_to_string(task.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "ratelimits-over").count()
}

/// Returns the number of connections to a server, without the one that asks.
async fn connections(server: &Server) -> usize {
    let clients: String = server.command(&["CLIENT", "LIST"]).await;
    clients.lines().count() - 1
}

#[tokio::test]
async fn registries_share_a_thread_and_a_connection() {
    let server = Server::start();
    let tenants: Vec<Registry> = (0..TENANTS)
        .map(|tenant| builder(&format!("tenant-{tenant}")).connect_lazy(&server.url()).unwrap())
        .collect();
    let last = &tenants[TENANTS - 1];
    last.limiter(NAME, FixedWindow::new(5, DAY)).unwrap();
    let key = format!("tenant-{}:overrides", TENANTS - 1);
    let text = format!("[\"{NAME}\"]\nlimit = 1\n");
    let _: u64 = server.command(&["HSET", &key, "version", "1", "toml", &text]).await;
    in_force(last, &[NAME]).await;
    assert_eq!((threads(), connections(&server).await), (1, 1));
}

#[tokio::test]
async fn registries_of_a_namespace_are_one_reader() {
    let server = Server::start();
    let text = format!("[\"{NAME}\"]\nlimit = 1\n");
    let _: u64 = server.command(&["HSET", "rl:overrides", "version", "1", "toml", &text]).await;
    let registries = [(); 20].map(|()| {
        let registry = builder("rl").connect_lazy(&server.url()).unwrap();
        registry.limiter(NAME, FixedWindow::new(5, DAY)).unwrap();
        registry
    });
    for registry in &registries {
        in_force(registry, &[NAME]).await;
    }
    // One more is decided by what the others have read.
    let late = builder("rl").connect_lazy(&server.url()).unwrap();
    assert_eq!(late.limiter(NAME, FixedWindow::new(5, DAY)).unwrap().peek(()).await.unwrap().limit, 1);

    // The first one ends, and the others still read.
    let [first, others @ ..] = registries;
    drop(first);
    let _: u64 = server.command(&["HSET", "rl:overrides", "version", "2", "toml", ""]).await;
    for registry in others.iter().chain([&late]) {
        in_force(registry, &[]).await;
    }
    let reads: String = server.command(&["INFO", "commandstats"]).await;
    let reads = reads.split("cmdstat_hmget:calls=").nth(1).and_then(|rest| rest.split(',').next());
    // Each of them alone would have read four times.
    assert!(reads.is_some_and(|reads| reads.parse::<u64>().unwrap() < 40), "{reads:?}");
}

#[tokio::test]
async fn registries_of_other_servers_are_read_alike() {
    let servers = [Server::start(), Server::start()];
    let registries = servers.each_ref().map(|server| builder("rl").connect_lazy(&server.url()).unwrap());
    for ((server, registry), limit) in servers.iter().zip(&registries).zip(1..) {
        registry.limiter(NAME, FixedWindow::new(5, DAY)).unwrap();
        let text = format!("[\"{NAME}\"]\nlimit = {limit}\n");
        let _: u64 = server.command(&["HSET", "rl:overrides", "version", "1", "toml", &text]).await;
        until("its own are in force", WITHIN, async || match &registry.overrides()[..] {
            [it] if it.settings() == [format!("limit = {limit}")] => Ok(()),
            found => Err(format!("{found:?}")),
        })
        .await;
    }
}
