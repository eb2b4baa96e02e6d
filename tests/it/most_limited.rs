//! Which keys are limited most, over every store.

use std::time::Duration;

use ratelimits::observe::{LimitedKey, MostLimited};
use ratelimits::{Error, FixedWindow, Registry, RegistryBuilder, count_limit, rate_limit};

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;

#[count_limit(2, "1d", key = (user, room), name = "most.daily", registry = registry)]
#[rate_limit("1/day", key = user, name = "most.trial", shadow, registry = registry)]
#[rate_limit("3/day", 3, key = user, name = "most.bucket", registry = registry)]
async fn send(registry: &Registry, user: &str, room: Option<u64>) -> Result<(), Error> {
    Ok(())
}

fn builder(list: &MostLimited) -> RegistryBuilder {
    Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE).observer(list.observer())
}

/// Returns the policy, the key and the refusals of each entry, of which none may be too high.
fn text(list: &MostLimited) -> Vec<String> {
    let text = |entry: LimitedKey| {
        assert_eq!(entry.overcount, 0);
        format!("{}{:?}: {}", entry.policy, entry.key.unwrap_or_default(), entry.refusals)
    };
    list.list().into_iter().map(text).collect()
}

#[tokio::test]
async fn only_the_policies_that_refuse_count() {
    let server = Server::shared();
    let list = MostLimited::new(10).keep_keys();
    for registry in [builder(&list).in_memory(), builder(&list).connect_lazy(&server.url()).unwrap()] {
        for _ in 0..5 {
            _ = send(&registry, "ann", Some(7)).await;
        }
        assert!(send(&registry, "ann", None).await.is_err());
        for room in [1, 2, 3, 4] {
            _ = send(&registry, "bob", Some(room)).await;
        }
        assert_eq!(text(&list), [r#"most.daily["ann", "7"]: 3"#, r#"most.bucket["bob"]: 1"#]);
        list.clear();
        assert_eq!(list.list(), []);
    }
}

#[tokio::test]
async fn hashes_are_those_in_the_keys_of_redis() {
    let server = Server::shared();
    let list = MostLimited::new(9);
    let registry = builder(&list).connect_lazy(&server.url()).unwrap();
    let long = "long ".repeat(100);
    for key in ["s3cr3t", &long] {
        for window in ["daily", "hourly"] {
            let limiter = registry.limiter(window, FixedWindow::new(1, Duration::from_secs(3600))).unwrap();
            for _ in 0..2 {
                _ = limiter.try_acquire(key).await;
            }
        }
    }
    let entries = list.list();
    assert_eq!(entries.len(), 4);
    for entry in entries {
        let pattern = format!("*:{}:*{{{}}}:*", entry.policy, entry.key_hash);
        let found: Vec<String> = server.command(&["KEYS", &pattern]).await;
        assert_eq!((found.len(), entry.key_hash.len(), entry.key), (1, 16, None), "{pattern}");
    }
}

#[tokio::test]
async fn long_keys_are_cut() {
    let list = MostLimited::new(9).keep_keys();
    let limiter =
        builder(&list).in_memory().limiter("cut", FixedWindow::new(1, Duration::from_secs(3600))).unwrap();
    for (key, shown) in [("é".repeat(128), "é".repeat(128)), ("é".repeat(129), "é".repeat(128) + "…")] {
        for _ in 0..2 {
            _ = limiter.try_acquire(("", &key, "x")).await;
        }
        let parts = list.list().remove(0).key.unwrap();
        let expected = if shown == key { vec!["", &shown, "…"] } else { vec!["", &shown] };
        assert_eq!(parts, expected);
        list.clear();
    }
}

#[tokio::test]
async fn hashes_identify_keys() {
    let (one, other) = (MostLimited::new(3), MostLimited::new(3));
    let registry = builder(&one).observer(other.observer()).in_memory();
    let [daily, hourly] = [("daily", 1), ("hourly", 2)].map(|(name, limit)| {
        registry.limiter(name, FixedWindow::new(limit, Duration::from_secs(86_400))).unwrap()
    });
    for _ in 0..4 {
        _ = daily.try_acquire("s3cr3t").await;
        _ = hourly.try_acquire("s3cr3t").await;
    }
    let refusals = |list: &MostLimited| list.list().iter().map(|entry| entry.refusals).collect::<Vec<_>>();
    assert_eq!((refusals(&one), refusals(&other)), (vec![3, 2], vec![3, 2]));
    let hashes = [&one, &one.clone(), &other].map(|list| list.list().into_iter().map(|entry| entry.key_hash));
    let [hashes, again, others] = hashes.map(Vec::from_iter);
    assert_eq!((&hashes, &hashes), (&again, &others));
    assert_eq!(hashes[0], hashes[1]);
    assert!(one.list().iter().all(|entry| entry.key.is_none()));
}
