//! Refusals by Redis that are repeated in process. The server's windows are all full, or all unused.

use std::pin::pin;
use std::time::Duration;

use ratelimits::{DecidedBy, Error, FixedWindow, Limiter, Registry, RegistryBuilder, count_limit};
use tokio::time::{advance, timeout};

use crate::faulty_server::{Fault, FaultyServer};

const MINUTE: Duration = Duration::from_secs(60);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

struct Fixture {
    server: FaultyServer,
    registry: Registry,
    limiter: Limiter,
}

/// A full window of this length.
fn full(builder: RegistryBuilder, period: Duration) -> Fixture {
    let server = FaultyServer::new(Fault::None);
    let registry = builder.over(server.clone());
    let limiter = registry.limiter("a", FixedWindow::new(5, period)).unwrap();
    server.set_full(true);
    Fixture { server, registry, limiter }
}

impl Fixture {
    /// Returns the `retry_after` of a refused call, and whether the server was asked.
    async fn refused(&self, cost: u64) -> (Duration, bool) {
        let before = self.server.commands();
        let error = self.limiter.try_acquire_n("a", cost).await.unwrap_err();
        let Error::Limited(limited) = &error else { panic!("{error:?}") };
        assert_eq!(limited.decision().source, DecidedBy::Redis);
        (error.retry_after().unwrap(), self.server.commands() > before)
    }

    /// Asserts that the next call is sent to the server, which refuses it.
    async fn assert_forgotten(&self) {
        assert!(self.refused(1).await.1);
    }

    async fn assert_denied(&self) {
        assert!(!self.refused(1).await.1);
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_are_repeated_until_their_retry() {
    let fixture = full(Registry::builder(), ms(400));
    assert_eq!(fixture.refused(1).await, (ms(400), true));
    for passed in [0, 1, 250, 399] {
        let denied = async {
            advance(ms(passed)).await;
            fixture.refused(1).await
        };
        assert_eq!(denied.await, (ms(400 - passed), false));
        advance(ms(400 - passed)).await;
        assert_eq!(fixture.refused(1).await, (ms(400), true));
    }
    fixture.server.set_full(false);
    advance(ms(400)).await;
    assert_eq!(fixture.limiter.try_acquire("a").await.unwrap().remaining, 4);
}

#[tokio::test(start_paused = true)]
async fn refusals_are_repeated_for_at_most_a_second() {
    let fixture = full(Registry::builder(), MINUTE);
    assert_eq!(fixture.refused(1).await, (MINUTE, true));
    advance(ms(999)).await;
    assert_eq!(fixture.refused(1).await, (MINUTE - ms(999), false));
    advance(ms(1)).await;
    assert_eq!(fixture.refused(1).await, (MINUTE, true));
}

/// Redis may have decided as soon as it was asked, or just before it replied.
#[tokio::test(start_paused = true)]
async fn slow_replies_are_repeated_for_less_time() {
    let fixture = full(Registry::builder(), ms(400));
    fixture.server.set(Fault::Slow(ms(90)));
    assert_eq!(fixture.refused(1).await, (ms(400), true));
    advance(ms(309)).await;
    assert_eq!(fixture.refused(1).await, (ms(91), false));
    advance(ms(1)).await;
    assert_eq!(fixture.refused(1).await, (ms(400), true));
}

#[tokio::test(start_paused = true)]
async fn every_cost_is_asked_for() {
    let fixture = full(Registry::builder(), MINUTE);
    for cost in 1..=5 {
        assert_eq!(fixture.refused(cost).await, (MINUTE, true));
    }
    for cost in 1..=5 {
        assert_eq!(fixture.refused(cost).await, (MINUTE, false));
    }
}

#[tokio::test(start_paused = true)]
async fn other_keys_and_numbers_are_asked_for() {
    let fixture = full(Registry::builder(), MINUTE);
    fixture.assert_forgotten().await;
    for (key, limit) in [("b", 5), ("a", 6)] {
        let limiter = fixture.registry.limiter("a", FixedWindow::new(limit, MINUTE)).unwrap();
        let before = fixture.server.commands();
        limiter.try_acquire(key).await.unwrap_err();
        assert_eq!(fixture.server.commands(), before + 1);
    }
    fixture.assert_denied().await;
}

#[tokio::test(start_paused = true)]
async fn registry_without_local_denials_always_asks() {
    let fixture = full(Registry::builder().local_denials(false), MINUTE);
    for _ in 0..3 {
        fixture.assert_forgotten().await;
    }
}

#[tokio::test(start_paused = true)]
async fn peeks_and_waiting_calls_ask() {
    let fixture = full(Registry::builder(), ms(50));
    let Fixture { server, limiter, .. } = &fixture;
    fixture.assert_forgotten().await;
    let before = server.commands();
    limiter.acquire_timeout("a", ms(1)).await.unwrap_err();
    assert_eq!(server.commands(), before + 1);
    server.set_full(false);
    assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
    assert!(limiter.acquire("a").await.unwrap().waited.is_zero());
    fixture.assert_denied().await;
}

/// What a call that could have waited learned is as true for others.
#[tokio::test(start_paused = true)]
async fn refused_waiting_calls_are_remembered() {
    let fixture = full(Registry::builder(), MINUTE);
    fixture.limiter.acquire_timeout("a", ms(1)).await.unwrap_err();
    fixture.assert_denied().await;
}

#[tokio::test(start_paused = true)]
async fn calls_that_are_never_admitted_ask() {
    let fixture = full(Registry::builder(), MINUTE);
    for _ in 0..3 {
        let before = fixture.server.commands();
        assert!(fixture.limiter.try_acquire_n("a", 6).await.unwrap_err().is_unsatisfiable());
        assert_eq!(fixture.server.commands(), before + 1);
    }
    // Also beside one that is denied.
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
    let list = [fixture.limiter.charge("a"), fixture.limiter.charge_n("b", 6)];
    assert!(fixture.registry.try_acquire_all(list).await.unwrap_err().is_unsatisfiable());
}

#[tokio::test(start_paused = true)]
async fn resets_and_refunds_end_denials() {
    let fixture = full(Registry::builder(), MINUTE);
    let Fixture { server, limiter, .. } = &fixture;
    server.set_full(false);
    let decision = limiter.try_acquire("a").await.unwrap();
    server.set_full(true);

    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
    decision.refund().await.unwrap();
    advance(ms(1)).await;
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
    limiter.refund("a", 1).await.unwrap();
    advance(ms(1)).await;
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
    limiter.reset("a").await.unwrap();
    advance(ms(1)).await;
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
}

/// They may have been made all the same.
#[tokio::test(start_paused = true)]
async fn failed_and_dropped_refunds_end_denials() {
    let fixture = full(Registry::builder(), MINUTE);
    fixture.assert_forgotten().await;
    fixture.server.set(Fault::Error("ERR no"));
    fixture.limiter.refund("a", 1).await.unwrap_err();
    fixture.server.set(Fault::Slow(ms(50)));
    advance(ms(1)).await;
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
    timeout(ms(1), fixture.limiter.refund("a", 1)).await.unwrap_err();
    advance(ms(1)).await;
    fixture.assert_forgotten().await;
}

/// The call that was refused before the refund is answered after it.
#[tokio::test(start_paused = true)]
async fn refusals_from_before_a_refund_are_not_remembered() {
    let fixture = full(Registry::builder(), MINUTE);
    let mut refused = pin!(fixture.refused(1));
    fixture.server.set(Fault::Slow(ms(30)));
    assert!(timeout(ms(10), &mut refused).await.is_err());
    fixture.limiter.reset("a").await.unwrap();
    assert_eq!(refused.await, (MINUTE, true));
    fixture.assert_forgotten().await;
}

#[tokio::test(start_paused = true)]
async fn refunds_of_dropped_calls_end_denials() {
    let fixture = full(Registry::builder(), MINUTE);
    let Fixture { server, limiter, .. } = &fixture;
    server.set_full(false);
    server.set(Fault::Slow(ms(20)));
    timeout(ms(10), limiter.try_acquire_n("a", 2)).await.unwrap_err();
    server.set_full(true);
    // Sent before the refund, and before its reply.
    fixture.assert_forgotten().await;
    fixture.assert_forgotten().await;
    fixture.assert_forgotten().await;
    fixture.assert_denied().await;
}

#[tokio::test(start_paused = true)]
async fn denials_outlast_the_connection() {
    let fixture = full(Registry::builder(), MINUTE);
    fixture.assert_forgotten().await;
    fixture.server.set(Fault::Refused);
    fixture.server.hang_up();
    fixture.assert_denied().await;
    advance(ms(1000)).await;
    let decision = fixture.limiter.try_acquire("a").await.unwrap();
    assert_eq!((decision.source, decision.remaining), (DecidedBy::Local, 4));
}

#[tokio::test(start_paused = true)]
async fn stacks_report_the_policies_that_are_known_to_refuse() {
    let fixture = full(Registry::builder(), MINUTE);
    let other = fixture.registry.limiter("b", FixedWindow::new(7, MINUTE)).unwrap();
    fixture.assert_forgotten().await;
    let before = fixture.server.commands();
    let charges = || [other.charge("a"), fixture.limiter.charge("a")];
    let Err(Error::Limited(limited)) = fixture.registry.try_acquire_all(charges()).await else { panic!() };
    assert_eq!(fixture.server.commands(), before);
    assert_eq!((limited.policy(), limited.decision().policies().len()), ("a", 1));
    other.try_acquire("a").await.unwrap_err();
    let Err(Error::Limited(limited)) = fixture.registry.try_acquire_all(charges()).await else { panic!() };
    let policies = limited.decision().policies();
    let names: Vec<&str> = policies.iter().map(|policy| &*policy.policy).collect();
    assert_eq!((fixture.server.commands(), names), (before + 1, vec!["b", "a"]));
}

#[count_limit(5, "1m", charge_when = |_| true)]
async fn charged_by_output() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1m")]
async fn charged() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn policies_with_charge_when_always_ask() {
    let Fixture { server, registry, .. } = full(Registry::builder(), MINUTE);
    for (refundable, asked) in [(true, 3), (false, 1)] {
        let before = server.commands();
        for _ in 0..3 {
            let call = async { if refundable { charged_by_output().await } else { charged().await } };
            assert!(registry.scope(call).await.unwrap_err().is_limited());
        }
        assert_eq!(server.commands(), before + asked);
    }
}
