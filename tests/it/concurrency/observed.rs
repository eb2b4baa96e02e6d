//! What observers see of calls that hold permits: each that is admitted, and its end.

mod changes;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use futures_util::FutureExt;
use ratelimits::observe::{CallOutcome, Observation};
use ratelimits::{
    ConcurrencyLimit, DecidedBy, Decision, Error, FixedWindow, Registry, RegistryBuilder, concurrency_limit,
    count_limit,
};
use tokio::time::{sleep, timeout};

use super::{SOON, until_remain};
use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);
const MOMENT: Duration = Duration::from_millis(20);

/// Collects what an observer sees.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    fn observed(&self, builder: RegistryBuilder) -> RegistryBuilder {
        let seen = self.clone();
        builder.observer(move |observation| seen.0.lock().unwrap().push(text(observation)))
    }

    /// A registry in process, and one on Redis.
    fn registries(&self, server: &Server) -> [(Registry, DecidedBy); 2] {
        let builder = || self.observed(Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE));
        let redis = builder().connect_lazy(&server.url()).unwrap();
        [(builder().in_memory(), DecidedBy::Memory), (redis, DecidedBy::Redis)]
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }

    /// Expects a single hold, which has begun and ended.
    #[track_caller]
    fn one(&self, what: &str, source: DecidedBy) {
        assert_eq!(
            self.take(),
            [format!("{what} admitted by {source:?}"), format!("{what} released by {source:?}")]
        );
    }
}

/// Returns an observation as `policy[key] × cost outcome by source`.
fn text(seen: &Observation<'_>) -> String {
    let Observation { policy, cost, outcome, .. } = seen;
    let is_end = *outcome == CallOutcome::Released;
    assert_eq!(seen.held().is_some(), is_end);
    assert!(!is_end || seen.quota().is_none() && seen.waited.is_zero() && seen.paused().is_none());
    let source = seen.source.map(|source| format!(" by {source:?}")).unwrap_or_default();
    let shadow = if seen.shadow { ", a shadow" } else { "" };
    format!("{policy}[{}] × {cost} {outcome}{source}{shadow}", seen.key().join(","))
}

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Value,
    Error,
    Panic,
    Never,
}

#[concurrency_limit(5, key = (user, 7), cost = cost, name = "ends.job")]
async fn job(user: &str, cost: u64, end: End) -> Result<(), Error> {
    tokio::task::yield_now().await;
    match end {
        End::Value => Ok(()),
        End::Error => Err(Registry::in_memory().limiter("none", ConcurrencyLimit::new(0)).unwrap_err()),
        End::Panic => panic!("the case"),
        End::Never => std::future::pending().await,
    }
}

#[concurrency_limit(max = max, key = user, name = "ends.bound", bind = decision, timeout = "forever")]
async fn bound(user: &str, max: u64) -> Result<Decision, Error> {
    Ok(decision)
}

#[concurrency_limit(1, key = user, name = "ends.shadow", shadow, bind = decision)]
async fn in_shadow(user: &str) -> Result<Decision, Error> {
    Ok(decision)
}

#[concurrency_limit(2, key = user, name = "ends.first")]
#[count_limit(1, "1d", key = user, name = "ends.daily")]
#[concurrency_limit(1, name = "ends.second", shadow)]
async fn stack(user: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(100, "1d", key = user, name = "ends.kept", charge_when = |_| false)]
#[concurrency_limit(2, key = user, name = "ends.one", cost = 2)]
#[concurrency_limit(5, key = user, name = "ends.other")]
async fn holds(user: &str, end: End) -> Result<(), Error> {
    match end {
        End::Panic => panic!("the case"),
        End::Never => std::future::pending().await,
        _ => Ok(()),
    }
}

/// Once the keys are there, a call in process may be decided without a lock.
#[tokio::test]
async fn holds_of_a_call_each_end_once() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let mut kept = 100;
        for end in [End::Value, End::Value, End::Panic, End::Value, End::Never, End::Value] {
            let call = AssertUnwindSafe(timeout(MOMENT, registry.scope(holds("ann", end)))).catch_unwind();
            let has_output = matches!(call.await, Ok(Ok(Ok(()))));
            assert_eq!(has_output, end == End::Value);
            // Without an output, nothing is given back.
            kept -= if has_output { 0 } else { 1 };
            let mut seen = seen.take();
            seen.sort();
            let each =
                ["ends.kept[ann] × 1 admitted", "ends.one[ann] × 2 admitted", "ends.one[ann] × 2 released"];
            let other = ["ends.other[ann] × 1 admitted", "ends.other[ann] × 1 released"];
            let expected: Vec<String> =
                each.iter().chain(&other).map(|it| format!("{it} by {source:?}")).collect();
            assert_eq!(seen, expected, "{end:?}");
            for (name, all) in [("ends.kept", kept), ("ends.one", 2), ("ends.other", 5)] {
                let policy = registry.policy(name).unwrap();
                until("all is given back", SOON, async || {
                    match policy.peek("ann").await.unwrap().remaining {
                        remaining if remaining == all => Ok(()),
                        remaining => Err(format!("{remaining} of {name}")),
                    }
                })
                .await;
            }
        }
    }
}

#[tokio::test]
async fn function_ends_once_however_it_ends() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        for end in [End::Value, End::Error] {
            assert_eq!(registry.scope(job("ann", 1, end)).await.is_ok(), end == End::Value);
            seen.one("ends.job[ann,7] × 1", source);
        }
        let panics = AssertUnwindSafe(registry.scope(job("ann", 3, End::Panic))).catch_unwind().await;
        assert!(panics.is_err());
        seen.one("ends.job[ann,7] × 3", source);
        tokio::select! {
            _ = registry.scope(job("bob", 2, End::Never)) => panic!("it ends"),
            () = until("it runs", SOON, async || {
                if seen.0.lock().unwrap().is_empty() { Err("not yet".into()) } else { Ok(()) }
            }) => {}
        }
        seen.one("ends.job[bob,7] × 2", source);
        // What costs nothing is not decided, and what does not fit holds nothing.
        registry.scope(job("eve", 0, End::Value)).await.unwrap();
        assert!(registry.scope(job("eve", 6, End::Value)).await.is_err());
        assert_eq!(seen.take(), [format!("ends.job[eve,7] × 6 limited by {source:?}")]);
    }
}

#[tokio::test]
async fn moved_decision_ends_where_it_is_dropped() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let decision = registry.scope(bound("ann", 1)).await.unwrap();
        // One that is dropped while it waits has held nothing.
        assert!(timeout(MOMENT, registry.scope(bound("ann", 1))).await.is_err());
        assert_eq!(seen.take(), [format!("ends.bound[ann] × 1 admitted by {source:?}")]);
        let waits = tokio::spawn({
            let registry = registry.clone();
            async move { registry.scope(bound("ann", 1)).await }
        });
        sleep(MOMENT).await;
        assert_eq!(seen.take(), Vec::<String>::new());
        thread::spawn(|| drop(decision)).join().unwrap();
        assert_eq!(seen.take(), [format!("ends.bound[ann] × 1 released by {source:?}")]);
        let admitted = waits.await.unwrap().unwrap();
        // A computed limit, which the holds of others do not change.
        let (more, again) = (registry.scope(bound("ann", 3)).await, registry.scope(bound("ann", 3)).await);
        drop((admitted, more.unwrap(), again.unwrap()));
        let (begun, ended) = ("ends.bound[ann] × 1 admitted", "ends.bound[ann] × 1 released");
        let expected = [begun, begun, begun, ended, ended, ended].map(|text| format!("{text} by {source:?}"));
        assert_eq!(seen.take(), expected);
    }
}

#[tokio::test]
async fn shadow_holds_what_it_admits() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let text = |outcome| format!("ends.shadow[ann] × 1 {outcome} by {source:?}, a shadow");
        let fits = registry.scope(in_shadow("ann")).await.unwrap();
        let exceeds = registry.scope(in_shadow("ann")).await.unwrap();
        assert_eq!(seen.take(), [text("admitted"), text("shadow_limited")]);
        drop(exceeds);
        assert_eq!(seen.take(), Vec::<String>::new());
        drop(fits);
        assert_eq!(seen.take(), [text("released")]);
    }
}

#[tokio::test]
async fn stack_ends_for_each_policy_that_holds() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        registry.scope(stack("ann")).await.unwrap();
        let by = |text: &str| format!("{text} by {source:?}");
        let admitted = [
            by("ends.first[ann] × 1 admitted"),
            by("ends.daily[ann] × 1 admitted"),
            by("ends.second[] × 1 admitted") + ", a shadow",
        ];
        let mut all = seen.take();
        assert_eq!(all[..3], admitted);
        all[3..].sort();
        assert_eq!(
            all[3..],
            [by("ends.first[ann] × 1 released"), by("ends.second[] × 1 released") + ", a shadow"]
        );
        // Another policy refuses, so nothing is held.
        assert!(registry.scope(stack("ann")).await.is_err());
        let refused = seen.take();
        assert_eq!(refused.len(), 3);
        assert!(
            refused.iter().all(|text| !text.contains("released") && !text.contains("admitted")),
            "{refused:?}"
        );
    }
}

#[tokio::test]
async fn decision_of_a_limiter_ends_once() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let exports = registry.limiter("exports", ConcurrencyLimit::new(4)).unwrap();
        let daily = registry.limiter("daily", FixedWindow::new(9, DAY)).unwrap();
        drop(exports.try_acquire_n("a", 3).await.unwrap());
        seen.one("exports[a] × 3", source);
        exports.try_acquire("a").await.unwrap().refund().await.unwrap();
        seen.one("exports[a] × 1", source);
        let mut decision = exports.acquire("a").await.unwrap();
        decision.settle(4);
        decision.refund().await.unwrap();
        seen.one("exports[a] × 1", source);
        exports.peek("a").await.unwrap();
        assert_eq!(seen.take(), Vec::<String>::new());
        // Two, which are decided by another path in process, and more.
        for len in [2, 3, 4, 6] {
            let charges = [
                daily.charge("a"),
                exports.charge_n("a", 2),
                exports.charge("b"),
                exports.charge("a"),
                exports.charge("c"),
                daily.charge("d"),
            ];
            let decision = registry.try_acquire_all(charges.into_iter().take(len)).await.unwrap();
            let held = len.min(5) - 1;
            assert_eq!(seen.take().len(), len);
            if len == 2 {
                drop(decision);
            } else {
                decision.refund().await.unwrap();
            }
            let ended = seen.take();
            assert!(ended.len() == held && ended.iter().all(|text| text.contains("released")), "{ended:?}");
        }
        until_remain(&exports, "a", 4).await;
    }
}

#[tokio::test]
async fn panics_of_observers_release_all_the_same() {
    let (seen, server) = (Seen::default(), Server::shared());
    let panicking = || {
        let builder = Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE);
        seen.observed(builder.observer(|seen| assert!(seen.held().is_none(), "the case")))
    };
    for registry in [panicking().in_memory(), panicking().connect_lazy(&server.url()).unwrap()] {
        let exports = registry.limiter("exports", ConcurrencyLimit::new(2)).unwrap();
        drop(exports.try_acquire("key").await.unwrap());
        let held = exports.try_acquire("key").await.unwrap();
        let panics = catch_unwind(AssertUnwindSafe(move || {
            let _held = held;
            panic!("another case")
        }));
        assert!(panics.is_err());
        registry.scope(job("ann", 1, End::Value)).await.unwrap();
        until_remain(&exports, "key", 2).await;
        // Those behind it are told nevertheless.
        assert_eq!(seen.take().iter().filter(|text| text.contains("released")).count(), 3);
    }
}
