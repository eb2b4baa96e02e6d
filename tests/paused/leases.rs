//! Leases while Redis fails or is slow. The server admits every call, or none.

use std::time::Duration;

use ratelimits::{Error, OnStoreError, Registry, RegistryBuilder, count_limit};
use tokio::time::Instant;

use crate::failing::Failing;
use crate::faulty_server::Fault;

const DEADLINE: Duration = Duration::from_millis(100);

#[count_limit(100, "1d", name = "leased", lease = 10, registry = registry)]
async fn leased(registry: &Registry) -> Result<(), Error> {
    Ok(())
}

fn start(builder: RegistryBuilder) -> Failing {
    Failing::start(builder.deadline(DEADLINE), "leased")
}

#[tokio::test(start_paused = true)]
async fn only_spent_permits_are_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    for _ in 0..5 {
        leased(&fixture.registry).await.unwrap();
    }
    fixture.fail().await;
    assert_eq!(fixture.limiter.peek(()).await.unwrap().remaining, 95);
    // Permits that are leased still count.
    leased(&fixture.registry).await.unwrap();
    assert_eq!(fixture.limiter.peek(()).await.unwrap().remaining, 94);
}

/// A call that gets no reply, and one that asks for itself after a lease was refused.
#[tokio::test(start_paused = true)]
async fn leases_keep_the_deadline() {
    for (is_full, fault) in [(false, Fault::NoReply), (true, Fault::Slow(Duration::from_millis(60)))] {
        for mode in [OnStoreError::Deny, OnStoreError::Local] {
            let fixture = start(Registry::builder().on_store_error(mode));
            // The first call of a key leases nothing.
            leased(&fixture.registry).await.unwrap();
            fixture.server.set_full(is_full);
            fixture.server.set(fault);
            let start = Instant::now();
            let result = leased(&fixture.registry).await;
            let passed = start.elapsed();
            assert!(passed <= DEADLINE + Duration::from_millis(1), "{fault:?}: {passed:?}");
            match mode {
                OnStoreError::Deny => {
                    assert!(matches!(result, Err(Error::Store(_))), "{fault:?}: {result:?}")
                }
                _ => result.unwrap(),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn requests_for_leases_tell_the_health_of_the_store() {
    let fixture = start(Registry::builder().on_store_error(OnStoreError::Deny));
    let health = || fixture.registry.store_health();
    leased(&fixture.registry).await.unwrap();
    fixture.server.set(Fault::NoReply);
    assert!(matches!(leased(&fixture.registry).await, Err(Error::Store(_))));
    // Its request ends at the same time.
    tokio::time::sleep(DEADLINE).await;
    assert!(!health().healthy);
    fixture.server.set(Fault::None);
    while leased(&fixture.registry).await.is_err() {
        tokio::time::advance(20 * DEADLINE).await;
    }
    assert!(health().healthy);
}

/// Redis has them again while the registry lives, and once when it ends.
#[tokio::test(start_paused = true)]
async fn what_is_left_is_given_back_once() {
    let fixture = start(Registry::builder());
    for (calls, given_back) in [(2, 1), (12, 1), (1, 0)] {
        for _ in 0..calls {
            leased(&fixture.registry).await.unwrap();
        }
        let before = fixture.server.commands();
        tokio::time::sleep(Duration::from_secs(5)).await;
        assert_eq!(fixture.server.commands() - before, given_back, "after {calls} calls");
    }
    for _ in 0..2 {
        leased(&fixture.registry).await.unwrap();
    }
    let (server, before) = (fixture.server.clone(), fixture.server.commands());
    drop(fixture);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(server.commands() - before, 1);
}
