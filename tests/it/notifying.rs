//! `notify_at`: observers are told once of each key and window that nears its limit.

mod lost;
mod random;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::observe::{CallOutcome, Observation, Quota};
use ratelimits::{
    DecidedBy, Error, FixedWindow, Registry, RegistryBuilder, count_limit, funnel_limit, rate_limit,
    window_limit,
};
use tokio::runtime::Handle;

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

const WITHIN: Duration = Duration::from_secs(20);

/// An event, and what was known of the key.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Told {
    policy: String,
    key: String,
    shadow: bool,
    source: Option<DecidedBy>,
    quota: Quota,
}

/// What an observer was told.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Events>>);

#[derive(Debug, Default)]
struct Events {
    told: Vec<Told>,
    /// For each policy and key whether a decision has found four fifths of its limit used, or more.
    reached: BTreeMap<(String, String), bool>,
}

impl Seen {
    fn builder(&self) -> RegistryBuilder {
        self.builder_in(&namespace())
    }

    fn builder_in(&self, namespace: &str) -> RegistryBuilder {
        let seen = self.clone();
        let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
        builder.observer(move |observation| seen.see(observation))
    }

    fn see(&self, seen: &Observation<'_>) {
        let Observation { policy, shadow, source, outcome, .. } = *seen;
        let (policy, key, quota) = (policy.to_owned(), seen.key().join("/"), seen.quota());
        let Events { told, reached } = &mut *self.0.lock().unwrap();
        if outcome == CallOutcome::NearLimit {
            assert_eq!((seen.cost, seen.waited), (0, Duration::ZERO));
            let quota = quota.expect("a decision has found the key there");
            return told.push(Told { policy, key, shadow, source, quota });
        }
        if let Some(quota) = quota.filter(|_| source != Some(DecidedBy::Local)) {
            let is_reached = 10 * (quota.limit - quota.remaining) >= 8 * quota.limit;
            *reached.entry((policy, key)).or_default() |= is_reached;
        }
    }

    /// Returns what was told since it was last asked.
    async fn take(&self, registry: &Registry) -> Vec<Told> {
        all_asked(registry).await;
        std::mem::take(&mut self.0.lock().unwrap().told)
    }
}

/// Waits until no mark is asked for any more.
async fn all_asked(registry: &Registry) {
    // That of the connection, and of its timeouts, run as long as the runtime.
    let alive = || Handle::current().metrics().num_alive_tasks();
    registry.limiter("notified.others", FixedWindow::new(1_000_000, WITHIN)).unwrap().peek(()).await.unwrap();
    until("all marks are asked for", WITHIN, async || match alive() {
        0..=2 => Ok(()),
        tasks => Err(format!("{tasks} tasks run")),
    })
    .await;
}

/// Runs a test on an observed registry in process, and on one on Redis, where every key that it leaves must expire.
async fn on_each(test: impl AsyncFn(&Registry, &Seen)) {
    let seen = Seen::default();
    test(&seen.builder().in_memory(), &seen).await;
    let (server, namespace) = (Server::shared(), namespace());
    test(&seen.builder_in(&namespace).connect_lazy(&server.url()).unwrap(), &seen).await;
    let keys: Vec<String> = server.command(&["KEYS", &format!("{namespace}:*")]).await;
    for key in keys {
        assert!(server.command::<i64>(&["PTTL", &key]).await > 0, "{key} has no expiry");
    }
}

/// Makes calls until one is refused or they are this many.
async fn repeat(times: u64, call: impl AsyncFn() -> Result<(), Error>) -> u64 {
    for admitted in 0..times {
        match call().await {
            Ok(()) => {}
            Err(error) if error.is_limited() => return admitted,
            Err(error) => panic!("{error}"),
        }
    }
    times
}

/// Defines functions of ten permits an hour or so, each of which tells at four fifths.
macro_rules! functions {
    ($registry:ident, $key:ident, $cost:ident; $($limit:ident $name:ident($($arguments:tt)*);)*) => {
        $(#[$limit($($arguments)*, key = $key, cost = $cost, notify_at = 0.8, registry = $registry)]
        async fn $name($registry: &Registry, $key: &str, $cost: u64) -> Result<(), Error> {
            Ok(())
        })*

        /// Calls the function of this name.
        async fn call(name: &str, registry: &Registry, key: &str, cost: u64) -> Result<(), Error> {
            match name {
                $(stringify!($name) => $name(registry, key, cost).await,)*
                _ => panic!("there is no {name}"),
            }
        }

        const NAMES: &[&str] = &[$(stringify!($name)),*];
    };
}

functions! {
    registry, key, cost;
    count_limit fixed(10, "1h");
    count_limit aligned(10, "1000d", aligned);
    count_limit computed(cost.max(10), "1h");
    window_limit log(10, "1h");
    window_limit counter(10, "1h", precision = "1m");
    rate_limit bucket("1/h", 10);
    rate_limit computed_bucket("1/h", cost.max(10));
    rate_limit interval("10/h", 10, refill = interval);
    rate_limit borrowing("1/h", 10, borrow);
    rate_limit pausing("1/h", 10, pause_when = |_| None);
    funnel_limit meter(10, drain = "10h");
    count_limit shadowed(10, "1h", shadow);
}

#[cfg(feature = "calendar")]
#[count_limit(10, "year", zone = zone, key = key, cost = cost, notify_at = 0.8, registry = registry)]
async fn calendar(registry: &Registry, key: &str, zone: &str, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn keys_are_told_once_when_they_reach_the_share() {
    on_each(async |registry, seen| {
        for name in NAMES {
            let is_shadow = *name == "shadowed";
            for (costs, remaining) in
                [(&[1; 12][..], 2), (&[7, 1, 1, 1, 1], 2), (&[10, 1], 0), (&[3, 3, 3, 3], 1)]
            {
                let key = format!("{costs:?}");
                for cost in costs {
                    _ = call(name, registry, &key, *cost).await;
                }
                let told = seen.take(registry).await;
                let [told] = &told[..] else { panic!("{name} {key}: {told:?}") };
                assert_eq!((&told.key, told.shadow), (&key, is_shadow), "{name}");
                assert!(told.policy.ends_with(name), "{told:?}");
                let Quota { limit, remaining: left, retry_after, .. } = told.quota;
                assert_eq!((limit, left, retry_after), (10, remaining, None), "{name} {key}");
            }
            for cost in [1, 6] {
                _ = call(name, registry, "less", cost).await;
            }
            assert_eq!(seen.take(registry).await, [], "{name}");
        }
    })
    .await;
}

#[cfg(feature = "calendar")]
#[tokio::test]
async fn windows_of_calendars_are_told_once_in_all_zones() {
    on_each(async |registry, seen| {
        for zone in ["Europe/Berlin", "Asia/Tokyo", "UTC", "Europe/Berlin"] {
            _ = repeat(3, async || calendar(registry, "a", zone, 1).await).await;
        }
        let told = seen.take(registry).await;
        assert!(told.len() == 1 && told[0].quota.remaining == 2, "{told:?}");
        assert_eq!(told[0].quota.window, Duration::from_secs(31_556_952));
    })
    .await;
}

#[count_limit(10, "1h", notify_at = 0.5, registry = registry)]
#[rate_limit("1/h", 20, notify_at = 0.1 + 0.2, key = (user, 7), registry = registry)]
#[window_limit(100, "1h", registry = registry)]
async fn stacked(registry: &Registry, user: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(10, "1h", notify_at = 0.5, registry = registry)]
#[rate_limit("1/h", 20, notify_at = 0.3, key = user, registry = registry)]
#[funnel_limit(100, "1/h", shadow, notify_at = 0.01, registry = registry)]
#[window_limit(100, "1h", registry = registry)]
async fn tall(registry: &Registry, user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn each_policy_of_a_function_tells_its_own_share() {
    on_each(async |registry, seen| {
        assert_eq!(repeat(9, async || stacked(registry, "ann").await).await, 9);
        let told: Vec<_> =
            seen.take(registry).await.into_iter().map(|told| (told.key, told.quota.remaining)).collect();
        let expected = [(String::new(), 5), ("ann/7".to_owned(), 14)];
        assert!(told.len() == 2 && expected.iter().all(|one| told.contains(one)), "{told:?}");

        assert_eq!(repeat(12, async || tall(registry, "ann").await).await, 10);
        let mut told: Vec<_> = seen.take(registry).await.iter().map(|told| told.quota.remaining).collect();
        told.sort_unstable();
        assert_eq!(told, [5, 14, 99]);
    })
    .await;
}

#[count_limit(10, "1h", key = key, notify_at = 0.8, registry = registry)]
fn blocking(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

/// Their marks in Redis are asked for by the thread for blocking calls.
#[test]
fn functions_that_are_not_async_tell() {
    let (seen, server) = (Seen::default(), Server::shared());
    let redis = seen.builder().connect_lazy(&server.url()).unwrap();
    for registry in [seen.builder().in_memory(), redis] {
        for key in 0..3 {
            for _ in 0..10 {
                blocking(&registry, key).unwrap();
            }
        }
        let start = std::time::Instant::now();
        while seen.0.lock().unwrap().told.len() < 3 {
            assert!(start.elapsed() < WITHIN, "{seen:?}");
            std::thread::yield_now();
        }
        let mut told = std::mem::take(&mut seen.0.lock().unwrap().told);
        told.sort_by_key(|told| told.key.clone());
        assert_eq!(told.iter().map(|told| &*told.key).collect::<Vec<_>>(), ["0", "1", "2"]);
    }
}

#[count_limit(10, "1h", key = key, notify_at = 0.8, charge_when = |_| charge, registry = registry)]
async fn refunded(registry: &Registry, key: &str, charge: bool) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn refunds_tell_nothing_again() {
    on_each(async |registry, seen| {
        repeat(7, async || refunded(registry, "a", true).await).await;
        assert_eq!(seen.take(registry).await, []);
        for told in [1, 0, 0, 0] {
            refunded(registry, "a", false).await.unwrap();
            assert_eq!(seen.take(registry).await.len(), told);
        }
    })
    .await;
}

#[count_limit(10, "1h", key = key, notify_at = 0.8, settle = |_| used, registry = registry)]
async fn settled(registry: &Registry, key: &str, used: u64) -> Result<(), Error> {
    Ok(())
}

/// The next call does, even if it is refused.
#[tokio::test]
async fn settlements_that_pass_the_share_are_told() {
    on_each(async |registry, seen| {
        for (key, used, is_refused) in [("a", 8, false), ("b", 10, true), ("c", 25, true)] {
            settled(registry, key, used).await.unwrap();
            assert_eq!(seen.take(registry).await, []);
            // Those on Redis are made soon after.
            assert_eq!(settled(registry, key, 1).await.is_err(), is_refused, "{key}");
            let told = seen.take(registry).await;
            assert!(told.len() == 1 && told[0].key == key, "{told:?}");
            _ = settled(registry, key, 1).await;
            assert_eq!(seen.take(registry).await, []);
        }
    })
    .await;
}

#[count_limit(10, "1h", key = key, name = "notified.paused", notify_at = 0.8, registry = registry)]
async fn pausable(registry: &Registry, key: &str) -> Result<(), Error> {
    Ok(())
}

/// It has nothing left while it is paused, but has not used that.
#[tokio::test]
async fn paused_windows_tell_nothing() {
    on_each(async |registry, seen| {
        for used in [0, 3] {
            let key = used.to_string();
            repeat(used, async || pausable(registry, &key).await).await;
            let policy = registry.policy("notified.paused").unwrap();
            policy.pause(&*key, Duration::from_secs(60)).await.unwrap();
            assert_eq!(repeat(3, async || pausable(registry, &key).await).await, 0);
            assert_eq!(seen.take(registry).await, []);
        }
    })
    .await;
}

#[cfg(feature = "overrides")]
#[count_limit(limit = limit, period = "1h", key = key, name = "notified.overridden", notify_at = 0.8)]
async fn overridden(key: &str, limit: u64) -> Result<(), Error> {
    Ok(())
}

/// The share is that of the limit in force.
#[cfg(feature = "overrides")]
#[tokio::test]
async fn shares_are_of_overridden_limits() {
    let text = "[\"notified.overridden\".keys.raised]\nlimit = 20\n[\"notified.overridden\".keys.off]\noff = true\n\
                [\"notified.overridden\".keys.blocked]\nblocked = true\n";
    let seen = Seen::default();
    crate::overrides::on_each_of(
        text,
        || seen.builder(),
        async |registry, _| {
            for (key, calls, remaining) in
                [("usual", 8, Some(2)), ("raised", 16, Some(4)), ("off", 30, None), ("blocked", 3, None)]
            {
                let call = async || registry.scope(overridden(key, 10)).await;
                repeat(calls - 1, call).await;
                assert_eq!(seen.take(registry).await, [], "{key}");
                repeat(5, call).await;
                let told: Vec<_> =
                    seen.take(registry).await.iter().map(|told| told.quota.remaining).collect();
                assert_eq!(told, Vec::from_iter(remaining), "{key}");
            }
        },
    )
    .await;
}

#[tokio::test]
async fn limiters_and_peeks_tell_nothing() {
    on_each(async |registry, seen| {
        let policy = registry.policy("notified.paused").unwrap();
        registry
            .limiter("notified.limiter", FixedWindow::new(1, WITHIN))
            .unwrap()
            .try_acquire("a")
            .await
            .unwrap();
        repeat(7, async || pausable(registry, "peeked").await).await;
        policy.peek("peeked").await.unwrap();
        assert_eq!(seen.take(registry).await, []);
        assert_eq!(policy.usage("peeked").await.unwrap().used, 7);
        // The command and the page show no marks.
        repeat(1, async || pausable(registry, "peeked").await).await;
        assert_eq!(seen.take(registry).await.len(), 1);
        assert_eq!(policy.usage("peeked").await.unwrap().used, 8);
    })
    .await;
}

#[test]
fn the_inventory_has_the_share() {
    let policies = ratelimits::policies();
    let policy = policies.iter().find(|policy| &*policy.name == "notified.paused").unwrap();
    assert!(policy.arguments.ends_with("notify_at = 0.8"), "{}", policy.arguments);
}
