//! Outages and overrides that begin or end while calls hold permits.

use std::collections::BTreeMap;

use ratelimits::OnStoreError;

use super::*;

#[tokio::test]
async fn ends_are_seen_during_and_after_an_outage() {
    let (seen, server) = (Seen::default(), Server::start());
    let registry = seen.observed(Registry::builder()).connect_lazy(&server.url()).unwrap();
    let limiter = |name, mode| registry.limiter(name, ConcurrencyLimit::new(9)).unwrap().on_store_error(mode);
    let local = limiter("local", OnStoreError::Local);
    let others = [limiter("allow", OnStoreError::Allow), limiter("deny", OnStoreError::Deny)];
    let before = local.try_acquire("a").await.unwrap();
    server.kill();
    let during = local.try_acquire_n("a", 2).await.unwrap();
    drop(before);
    for limiter in &others {
        drop(limiter.try_acquire("a").await);
    }
    let expected = [
        "local[a] × 1 admitted by Redis",
        "local[a] × 2 admitted by Local",
        "local[a] × 1 released by Redis",
        "allow[a] × 1 admitted by Allowed",
        "deny[a] × 1 store_error",
    ];
    assert_eq!(seen.take(), expected);
    server.restart().await;
    until("the outage ends", SOON, async || {
        drop(local.try_acquire("b").await);
        if registry.store_health().healthy { Ok(()) } else { Err("outage".to_owned()) }
    })
    .await;
    let mut balance = BTreeMap::new();
    for text in seen.take() {
        let (policy, event) = text.split_once(" × 1 ").unwrap();
        let (outcome, source) = event.split_once(" by ").unwrap();
        *balance.entry((policy.to_owned(), source.to_owned())).or_insert(0) +=
            if outcome == "admitted" { 1 } else { -1 };
    }
    assert!(balance.values().all(|left| *left == 0), "{balance:?}");
    drop(during);
    assert_eq!(seen.take(), ["local[a] × 2 released by Local"]);
}

#[cfg(feature = "overrides")]
#[tokio::test]
async fn nothing_is_held_while_a_policy_is_off() {
    let seen = Seen::default();
    let builder = || seen.observed(Registry::builder());
    let text = "[\"ends.bound\"]\noff = true\n[\"ends.job\"]\nshadow = true\nmax = 2\n";
    crate::overrides::on_each_of(text, builder, async |registry, file| {
        crate::overrides::in_force(registry, &["ends.bound", "ends.job"]).await;
        drop(registry.scope(bound("ann", 1)).await.unwrap());
        assert_eq!(seen.take(), Vec::<String>::new());
        registry.scope(job("ann", 2, End::Value)).await.unwrap();
        registry.scope(job("ann", 3, End::Value)).await.unwrap();
        let texts = seen.take();
        let outcomes: Vec<_> = texts.iter().map(|text| text.split(' ').nth(3).unwrap()).collect();
        assert_eq!(outcomes, ["admitted", "released", "shadow_limited"]);
        file.replace("# none\n");
        // One that begins before the policy is turned off ends afterwards.
        crate::overrides::in_force(registry, &[]).await;
        let before = registry.scope(bound("ann", 1)).await.unwrap();
        file.replace(text);
        crate::overrides::in_force(registry, &["ends.bound", "ends.job"]).await;
        assert_eq!(seen.take().len(), 1);
        drop(before);
        assert_eq!(seen.take().len(), 1);
    })
    .await;
}
