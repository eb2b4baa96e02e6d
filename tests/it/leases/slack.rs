//! Leases whose size processes choose by their traffic.

use super::*;

/// A lease lives for ten seconds.
#[rate_limit("1000/s", 200_000, key = key, name = "long", slack = "5%", registry = registry)]
async fn long(registry: &Registry, key: &str) -> Result<(), Error> {
    Ok(())
}

/// A lease lives for a microsecond.
#[rate_limit("1000/s", 10, name = "short", slack = "0.01%", registry = registry)]
async fn short(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1000/s", burst = burst, key = key, name = "burst", slack = "5%", registry = registry)]
async fn of_burst(registry: &Registry, key: &str, burst: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("100/day", 4, name = "tight", slack = "5%", registry = registry)]
async fn tight(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn a_rush_makes_few_requests() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let before = fixture.server.script_calls().await;
    for _ in 0..2000 {
        long(&registry, "a").await.unwrap();
    }
    let rush = fixture.server.script_calls().await - before;
    assert!(rush <= 30, "{rush} requests");
    for _ in 0..2000 {
        of_burst(&registry, "a", 200_000).await.unwrap();
    }
    let rush = fixture.server.script_calls().await - before - rush;
    assert!(rush <= 30, "{rush} requests with a computed burst");
}

#[tokio::test]
async fn single_calls_lease_nothing() {
    let fixture = Fixture::start();
    let (registry, bucket) = (fixture.registry(), TokenBucket::per_second(1000).burst(200_000));
    let limiter = fixture.limiter("long", bucket);
    // The script has to be loaded first.
    long(&registry, "other").await.unwrap();
    for key in ["a", "b", "c"] {
        let before = fixture.server.script_calls().await;
        long(&registry, key).await.unwrap();
        assert_eq!(fixture.server.script_calls().await - before, 1);
        assert!(limiter.peek(key).await.unwrap().remaining >= 199_999);
    }
}

#[tokio::test]
async fn permits_that_live_shorter_than_a_round_trip_are_not_leased() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let before = fixture.server.script_calls().await;
    let mut calls = 0;
    let end = Instant::now() + Duration::from_millis(200);
    while Instant::now() < end {
        calls += u64::from(short(&registry).await.is_ok());
    }
    let requests = fixture.server.script_calls().await - before;
    assert!(requests >= calls, "{requests} requests of {calls} calls");
}

/// Whoever asks, in whatever order: all permits of the bucket can be used, and no more.
#[tokio::test]
async fn the_last_permits_are_admitted() {
    let fixture = Fixture::start();
    let (a, b) = (fixture.registry(), fixture.registry());
    let mut admitted = 0;
    for _ in 0..10 {
        for registry in [&a, &b] {
            admitted += u64::from(tight(registry).await.is_ok());
        }
    }
    assert_eq!(admitted, 4);
}

#[tokio::test]
async fn in_process_the_limit_is_exact() {
    let registry = Registry::in_memory();
    for _ in 0..4 {
        tight(&registry).await.unwrap();
    }
    assert!(tight(&registry).await.unwrap_err().is_limited());
}

#[tokio::test]
async fn what_is_left_returns_with_the_registry() {
    let fixture = Fixture::start();
    let registry = fixture.registry();
    let limiter = fixture.limiter("tight", TokenBucket::new(Rate::new(100, DAY)).burst(4));
    tight(&registry).await.unwrap();
    tight(&registry).await.unwrap();
    drop(registry);
    until("what was leased is given back", WITHIN, async || {
        match limiter.peek(()).await.unwrap().remaining {
            2 => Ok(()),
            remaining => Err(format!("{remaining} permits remain")),
        }
    })
    .await;
}
