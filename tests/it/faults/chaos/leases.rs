//! The same with leases: four registries share the permits of a few keys, with and without batches and local denials.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ratelimits::Registry;

use super::events::Target;
use crate::faults::{MAX_LATENCY, RECOVERS_WITHIN};
use crate::support::budget::budget;
use crate::support::leased_load::{self, Leased, LeasedReport};
use crate::support::random::Random;
use crate::support::server::Server;
use crate::support::stall_monitor::StallMonitor;
use crate::support::until::until;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn leases_keep_their_promise_under_random_faults() {
    let mut random = Random::seeded();
    let mut target = Target::start().await;
    let url = target.proxy.url();
    let registries = [
        Registry::builder(),
        Registry::builder().without_batches(),
        Registry::builder().local_denials(false),
        Registry::builder().local_denials(false).without_batches(),
    ]
    .map(|builder| builder.connect_lazy(&url).expect("the URL is valid"));
    for _ in 0..budget(1, 8) {
        let (stop, stalls) = (Arc::new(AtomicBool::new(false)), StallMonitor::start());
        let loads = registries.clone().map(|registry| {
            let (random, stop) = (Random::new(random.next()), Arc::clone(&stop));
            let go_on = move || !stop.load(Ordering::Relaxed);
            tokio::spawn(async move { LeasedReport::of(&registry, &random, go_on).await })
        });
        target.play_all(&mut random).await;
        for registry in &registries {
            recovers(registry).await;
        }
        // Two rushes without faults.
        tokio::time::sleep(2 * leased_load::CYCLE).await;
        stop.store(true, Ordering::Relaxed);
        let mut reports = Vec::new();
        for load in loads {
            reports.push(load.await.expect("no call panics"));
        }
        let report = LeasedReport::sum(reports);
        println!("{} calls, {} failed", report.calls, report.failures);
        stalls.assert_within(MAX_LATENCY, report.longest, "a call");
        report.assert_promises_held(&target.losses);
        for registry in &registries {
            spends_leases(registry, &target.server).await;
        }
    }
}

async fn recovers(registry: &Registry) {
    for leased in Leased::ALL {
        until("Redis decides again", RECOVERS_WITHIN, async || match leased.call(registry).await {
            Err(error) if !error.is_limited() => Err(error.to_string()),
            _ => Ok(()),
        })
        .await;
    }
}

async fn spends_leases(registry: &Registry, server: &Server) {
    const CALLS: u64 = 10;
    until("calls spend leases", RECOVERS_WITHIN, async || {
        let before = server.script_calls().await;
        for _ in 0..CALLS {
            Leased::Window.call(registry).await.map_err(|error| error.to_string())?;
        }
        match server.script_calls().await - before {
            0..=5 => Ok(()),
            sent => Err(format!("{sent} script calls")),
        }
    })
    .await;
}
