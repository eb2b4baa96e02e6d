//! What observers see: each decision once, from every path that a call can take.

use std::cell::Cell;
use std::fmt::{self, Display};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ratelimits::observe::Observation;
use ratelimits::{
    DecidedBy, Error, FixedWindow, OnStoreError, Registry, RegistryBuilder, RequestContext, TokenBucket,
    count_limit, rate_limit, window_limit,
};
use tokio::task::JoinSet;

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

/// Nothing listens here.
const ABSENT: &str = "redis://127.0.0.1:1";

/// Collects observations.
#[derive(Clone, Debug, Default)]
struct Seen(Arc<Mutex<Vec<String>>>);

impl Seen {
    /// A builder of a registry that is observed.
    fn builder(&self) -> RegistryBuilder {
        let seen = self.clone();
        let builder = Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE);
        builder.observer(move |observation| seen.0.lock().unwrap().push(text(observation)))
    }

    /// A registry in process, and one in Redis.
    fn registries(&self, server: &Server) -> [(Registry, DecidedBy); 2] {
        let redis = self.builder().connect_lazy(&server.url()).unwrap();
        [(self.builder().in_memory(), DecidedBy::Memory), (redis, DecidedBy::Redis)]
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

/// Returns an observation as `policy[key] × cost: outcome by source, remaining of limit`.
fn text(seen: &Observation<'_>) -> String {
    let Observation { policy, cost, .. } = seen;
    let (key, outcome) = (seen.key().join(","), seen.outcome.name());
    let source = seen.source.map(|source| format!(" by {source:?}")).unwrap_or_default();
    let quota = seen.quota().map(|quota| format!(", {} of {}", quota.remaining, quota.limit));
    format!("{policy}[{key}] × {cost}: {outcome}{source}{}", quota.unwrap_or_default())
}

#[rate_limit("2/day", 2, key = (user, room), cost = cost, name = "seen.send", registry = registry)]
async fn send(registry: &Registry, user: &str, room: u64, cost: u32) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", key = key, name = "seen.daily", registry = registry)]
#[window_limit(1, "1d", name = "seen.trial", shadow, registry = registry)]
#[rate_limit("2/day", 2, key = key, name = "seen.bucket", registry = registry)]
async fn stacked(registry: &Registry, key: Option<u64>) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d", key_type = USER, name = "seen.mine", registry = registry)]
async fn mine(registry: &Registry, limit: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(4, "1d", name = "seen.leased", lease = 4, registry = registry)]
async fn leased(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", key = "<@user_or_ip>", name = "seen.client", registry = registry)]
async fn by_client(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn clients_are_seen_as_users_or_addresses() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let from = || RequestContext::new().with_ip([192, 0, 2, 1]);
        from().scope(by_client(&registry)).await.unwrap();
        from().with_user("ann").scope(by_client(&registry)).await.unwrap();
        assert_eq!(
            seen.take(),
            ["ip,192.0.2.1", "user,ann"]
                .map(|key| format!("seen.client[{key}] × 1: admitted by {source:?}, 0 of 1"))
        );
    }
}

/// Returns the parts of the key that was refused.
fn refused_key<T>(result: Result<T, Error>) -> Option<Vec<String>> {
    match result {
        Err(Error::Limited(limited)) => limited.key().map(<[_]>::to_vec),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it is admitted"),
    }
}

#[tokio::test]
async fn refusals_have_the_key_that_is_seen() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, _) in seen.registries(&server) {
        send(&registry, "ann", 7, 2).await.unwrap();
        // On Redis the second refusal repeats the first.
        for _ in 0..2 {
            let key = refused_key(send(&registry, "ann", 7, 1).await);
            assert_eq!(key, Some(vec!["ann".to_owned(), "7".to_owned()]));
        }
        for _ in 0..2 {
            stacked(&registry, Some(9)).await.unwrap();
        }
        assert_eq!(refused_key(stacked(&registry, Some(9)).await), Some(vec!["9".to_owned()]));
        let limiter = registry.limiter("seen.key", FixedWindow::new(1, DAY)).unwrap();
        limiter.try_acquire(()).await.unwrap();
        assert_eq!(refused_key(limiter.try_acquire(()).await), Some(Vec::new()));
        limiter.try_acquire("b").await.unwrap();
        let charges = ["a", "b", "c"].map(|key| limiter.charge(key));
        assert_eq!(refused_key(registry.try_acquire_all(charges).await), Some(vec!["b".to_owned()]));
    }
    let unobserved = Registry::in_memory();
    send(&unobserved, "ann", 7, 2).await.unwrap();
    assert_eq!(refused_key(send(&unobserved, "ann", 7, 1).await), None);
}

#[tokio::test]
async fn each_call_of_a_function_is_seen_once() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        for cost in [1, 0, 1, 1, 3] {
            _ = send(&registry, "ann", 7, cost).await;
        }
        assert_eq!(
            seen.take(),
            [
                format!("seen.send[ann,7] × 1: admitted by {source:?}, 1 of 2"),
                format!("seen.send[ann,7] × 1: admitted by {source:?}, 0 of 2"),
                format!("seen.send[ann,7] × 1: limited by {source:?}, 0 of 2"),
                format!("seen.send[ann,7] × 3: limited by {source:?}, 0 of 2"),
            ]
        );
    }
}

#[tokio::test]
async fn each_policy_of_a_call_is_seen() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        stacked(&registry, Some(1)).await.unwrap();
        stacked(&registry, Some(1)).await.unwrap();
        assert!(stacked(&registry, Some(1)).await.is_err());
        assert_eq!(
            seen.take(),
            [
                format!("seen.daily[1] × 1: admitted by {source:?}, 4 of 5"),
                format!("seen.trial[] × 1: admitted by {source:?}, 0 of 1"),
                format!("seen.bucket[1] × 1: admitted by {source:?}, 1 of 2"),
                format!("seen.daily[1] × 1: admitted by {source:?}, 3 of 5"),
                format!("seen.trial[] × 1: shadow_limited by {source:?}, 0 of 1"),
                format!("seen.bucket[1] × 1: admitted by {source:?}, 0 of 2"),
                format!("seen.daily[1] × 1: not_charged by {source:?}, 3 of 5"),
                format!("seen.trial[] × 1: shadow_limited by {source:?}, 0 of 1"),
                format!("seen.bucket[1] × 1: limited by {source:?}, 0 of 2"),
            ]
        );
    }
}

#[tokio::test]
async fn calls_that_cannot_be_decided_are_seen() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, _) in seen.registries(&server) {
        assert!(matches!(stacked(&registry, None).await, Err(Error::MissingKey(_))));
        assert!(matches!(mine(&registry, 1).await, Err(Error::MissingKey(_))));
        let invalid = RequestContext::new().with_user("ann").scope(mine(&registry, 0)).await;
        assert!(matches!(invalid, Err(Error::Invalid(_))));
        assert_eq!(
            seen.take(),
            [
                "seen.daily[] × 1: missing_key",
                "seen.bucket[] × 1: missing_key",
                "seen.mine[] × 1: missing_key",
                "seen.mine[] × 1: invalid",
            ]
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_limiters_are_seen() {
    struct Unformattable;
    impl Display for Unformattable {
        fn fmt(&self, _: &mut fmt::Formatter<'_>) -> fmt::Result {
            Err(fmt::Error)
        }
    }

    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, source) in seen.registries(&server) {
        let window = registry.limiter("window", FixedWindow::new(3, DAY)).unwrap();
        let bucket = registry.limiter("bucket", TokenBucket::per_second(1).burst(9)).unwrap();
        window.try_acquire_n((1, "a"), 2).await.unwrap();
        assert!(window.acquire_n_timeout((1, "a"), 2, Duration::from_secs(1)).await.is_err());
        assert!(window.try_acquire(Unformattable).await.is_err());
        tokio::task::block_in_place(|| window.blocking_try_acquire("b")).unwrap();
        registry.try_acquire_all([window.charge("c"), bucket.charge("c")]).await.unwrap();
        assert!(registry.try_acquire_all([bucket.charge(Unformattable)]).await.is_err());
        let free = window.charge_n("d", 0);
        registry.try_acquire_all([window.charge("d"), free, window.charge_n("d", 2)]).await.unwrap();
        let other = registry.limiter("window", FixedWindow::new(4, DAY)).unwrap();
        assert!(registry.try_acquire_all([window.charge("e"), other.charge("e")]).await.is_err());
        // None of these takes a decision.
        window.peek("c").await.unwrap();
        window.try_acquire_n("c", 0).await.unwrap();
        window.refund("c", 1).await.unwrap();
        window.reset("c").await.unwrap();
        assert!(window.peek(Unformattable).await.is_err());
        assert!(window.try_acquire_n(Unformattable, 0).await.is_err());
        assert_eq!(
            seen.take(),
            [
                format!("window[1,a] × 2: admitted by {source:?}, 1 of 3"),
                format!("window[1,a] × 2: limited by {source:?}, 1 of 3"),
                "window[] × 1: missing_key".to_owned(),
                format!("window[b] × 1: admitted by {source:?}, 2 of 3"),
                format!("window[c] × 1: admitted by {source:?}, 2 of 3"),
                format!("bucket[c] × 1: admitted by {source:?}, 8 of 9"),
                "bucket[] × 1: missing_key".to_owned(),
                // One charge of three, asked for twice.
                format!("window[d] × 1: admitted by {source:?}, 0 of 3"),
                format!("window[d] × 2: admitted by {source:?}, 0 of 3"),
                "window[] × 1: invalid".to_owned(),
            ]
        );
    }
}

/// A `Display` that shows something else each time.
struct Next(Cell<u64>);

impl Display for Next {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.set(self.0.get() + 1);
        write!(f, "{}", self.0.get())
    }
}

#[tokio::test]
async fn keys_are_formatted_once() {
    let (seen, server) = (Seen::default(), Server::shared());
    for (registry, _) in seen.registries(&server) {
        let bucket = registry.limiter("bucket", TokenBucket::per_second(1).burst(1)).unwrap();
        let next = Next(Cell::default());
        for number in 1..4 {
            bucket.try_acquire(&next).await.unwrap();
            assert_eq!(bucket.peek(number).await.unwrap().remaining, 0);
        }
        let keys = seen.take();
        assert!(
            keys.iter().zip(1..).all(|(seen, key)| seen.starts_with(&format!("bucket[{key}]"))),
            "{keys:?}"
        );
    }
}

#[count_limit(5, "1d", key = key, name = "seen.both", registry = registry)]
#[rate_limit("1/day", key = key, name = "seen.small", registry = registry)]
async fn both(registry: &Registry, key: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn repeated_refusals_are_those_of_the_policies_that_refuse() {
    let (seen, server) = (Seen::default(), Server::shared());
    let registry = seen.builder().connect_lazy(&server.url()).unwrap();
    for _ in 0..3 {
        _ = both(&registry, 1).await;
    }
    let seen = seen.take();
    let (small, both) =
        ("seen.small[1] × 1: limited by Redis, 0 of 1", "seen.both[1] × 1: not_charged by Redis, 4 of 5");
    assert_eq!(seen[2..4], [both, small]);
    // Unless the machine was so slow that the denial had ended.
    assert!(seen[4..] == [small] || seen[4..] == [both, small], "{seen:?}");
}

#[count_limit(5, "1d", name = "seen.sound", registry = registry)]
#[window_limit(1, "1d", name = "seen.broken", shadow, registry = registry)]
async fn half_broken(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn shadows_that_fail_are_seen_without_numbers() {
    let (seen, server) = (Seen::default(), Server::start());
    let registry = seen.builder().connect_lazy(&server.url()).unwrap();
    half_broken(&registry).await.unwrap();
    let keys: Vec<String> = server.command(&["KEYS", "*seen.broken*"]).await;
    let () = server.command(&["SET", &keys[0], "not a state", "KEEPTTL"]).await;
    half_broken(&registry).await.unwrap();
    assert_eq!(
        seen.take()[2..],
        ["seen.sound[] × 1: admitted by Redis, 3 of 5", "seen.broken[] × 1: store_error"]
    );
}

#[tokio::test]
async fn calls_that_redis_is_not_asked_for_are_seen() {
    let (seen, server) = (Seen::default(), Server::shared());
    let registry = seen.builder().connect_lazy(&server.url()).unwrap();
    for _ in 0..4 {
        leased(&registry).await.unwrap();
    }
    assert!(leased(&registry).await.is_err() && leased(&registry).await.is_err());
    let outcomes = seen.take().join("\n");
    assert_eq!(outcomes.matches("seen.leased[] × 1: admitted by Redis").count(), 4, "{outcomes}");
    assert_eq!(outcomes.matches("seen.leased[] × 1: limited by Redis, 0 of 4").count(), 2, "{outcomes}");
}

#[tokio::test]
async fn failures_of_the_store_are_seen_with_what_is_done_about_them() {
    let seen = Seen::default();
    for (mode, expected) in [
        (OnStoreError::Local, "seen.send[ann,7] × 1: admitted by Local, 1 of 2"),
        (OnStoreError::Allow, "seen.send[ann,7] × 1: admitted by Allowed"),
        (OnStoreError::Deny, "seen.send[ann,7] × 1: store_error"),
    ] {
        let registry = seen.builder().on_store_error(mode).connect_lazy(ABSENT).unwrap();
        let result = send(&registry, "ann", 7, 1).await;
        assert_eq!(result.is_err(), mode == OnStoreError::Deny);
        let bucket = registry.limiter("seen.send", TokenBucket::per_second(1).burst(2)).unwrap();
        assert_eq!(bucket.try_acquire(("ann", 7)).await.is_err(), mode == OnStoreError::Deny);
        let seen = seen.take();
        assert_eq!(seen[0], expected);
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1].split(',').next(), expected.split(',').next());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_observer_sees_every_call_of_many_tasks() {
    let (first, second, server) = (Seen::default(), Seen::default(), Server::shared());
    let also = second.clone();
    let builder = first.builder().observer(move |seen| also.0.lock().unwrap().push(text(seen)));
    for registry in [builder.clone().in_memory(), builder.connect_lazy(&server.url()).unwrap()] {
        let mut tasks = JoinSet::new();
        for task in 0..32 {
            let registry = registry.clone();
            tasks.spawn(async move {
                for _ in 0..10 {
                    _ = send(&registry, "ann", task % 8, 1).await;
                }
            });
        }
        tasks.join_all().await;
        let [mut seen, mut also] = [first.take(), second.take()];
        assert_eq!(seen.iter().filter(|seen| seen.contains("admitted")).count(), 16);
        assert_eq!(seen.iter().filter(|seen| seen.contains("limited")).count(), 304);
        seen.sort();
        also.sort();
        assert_eq!(seen, also);
    }
}
