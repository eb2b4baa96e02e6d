//! Charges that Redis admits after an outage are also made to the local state. The server admits every call.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimits::OnStoreError::{Allow, Deny};
use ratelimits::{
    DecidedBy, Decision, Error, FixedWindow, Registry, RegistryBuilder, TokenBucket, count_limit,
};
use tokio::time::sleep;

use crate::failing::Failing;

const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);

fn start(builder: RegistryBuilder) -> Failing {
    Failing::start(builder, "a")
}

impl Failing {
    async fn acquire(&self, cost: u64, source: DecidedBy) -> Decision {
        let decision = self.limiter.try_acquire_n("a", cost).await.unwrap();
        assert_eq!(decision.source, source);
        decision
    }

    /// What a call would get in process.
    async fn local(&self) -> u64 {
        let decision = self.limiter.peek("a").await.unwrap();
        assert_eq!(decision.source, DecidedBy::Local);
        decision.remaining
    }
}

#[tokio::test(start_paused = true)]
async fn charges_during_a_flap_are_mirrored() {
    let fixture = start(Registry::builder());
    // Before any outage there is nothing to mirror to.
    fixture.acquire(50, DecidedBy::Redis).await;
    fixture.fail().await;
    assert_eq!(fixture.local().await, 100);
    fixture.acquire(10, DecidedBy::Local).await;
    fixture.recover().await;
    fixture.acquire(20, DecidedBy::Redis).await;
    fixture.fail().await;
    assert_eq!(fixture.local().await, 70);
}

/// Also a key that the process did not decide during the outage.
#[tokio::test(start_paused = true)]
async fn every_key_is_mirrored_during_a_flap() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    fixture.acquire(20, DecidedBy::Redis).await;
    fixture.fail().await;
    assert_eq!(fixture.local().await, 80);
}

#[tokio::test(start_paused = true)]
async fn after_a_minute_only_live_keys_are_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.acquire(10, DecidedBy::Local).await;
    fixture.recover().await;
    sleep(2 * MINUTE).await;
    fixture.acquire(20, DecidedBy::Redis).await;
    let other = fixture.limiter.try_acquire_n("c", 20).await.unwrap();
    assert_eq!(other.source, DecidedBy::Redis);
    fixture.fail().await;
    assert_eq!(fixture.local().await, 70);
    assert_eq!(fixture.limiter.peek("c").await.unwrap().remaining, 100);
}

/// After a minute the local state owes nothing any more.
#[tokio::test(start_paused = true)]
async fn what_does_not_fit_is_owed_during_a_flap() {
    for (pause, remaining) in [(Duration::ZERO, 70), (2 * MINUTE, 100)] {
        let fixture = start(Registry::builder());
        fixture.fail().await;
        fixture.acquire(90, DecidedBy::Local).await;
        fixture.recover().await;
        sleep(pause).await;
        fixture.acquire(40, DecidedBy::Redis).await;
        fixture.fail().await;
        assert_eq!(fixture.local().await, 0);
        sleep(DAY).await;
        fixture.fail().await;
        assert_eq!(fixture.local().await, remaining, "the next window");
    }
}

#[tokio::test(start_paused = true)]
async fn shares_are_charged_in_full() {
    let fixture = start(Registry::builder().instances(4));
    fixture.fail().await;
    fixture.recover().await;
    fixture.acquire(20, DecidedBy::Redis).await;
    fixture.fail().await;
    assert_eq!(fixture.local().await, 5);
}

#[tokio::test(start_paused = true)]
async fn refunds_are_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.acquire(10, DecidedBy::Local).await;
    fixture.recover().await;
    let decision = fixture.acquire(20, DecidedBy::Redis).await;
    decision.refund().await.unwrap();
    fixture.fail().await;
    assert_eq!(fixture.local().await, 90);
}

/// The server has none.
#[tokio::test(start_paused = true)]
async fn what_was_counted_in_an_outage_is_state_to_reset() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.acquire(10, DecidedBy::Local).await;
    fixture.recover().await;
    assert!(fixture.limiter.reset("a").await.unwrap());
    assert!(!fixture.limiter.reset("a").await.unwrap());
}

#[count_limit(100, "1d", name = "a", key = name, charge_when = |out| !matches!(out, Ok(true)))]
async fn log_in(name: &str, succeeds: bool) -> Result<bool, Error> {
    let _ = name;
    Ok(succeeds)
}

#[tokio::test(start_paused = true)]
async fn conditional_charges_are_refunded_in_both_stores() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    for succeeds in [true, false, true, true] {
        assert_eq!(fixture.registry.scope(log_in("a", succeeds)).await.unwrap(), succeeds);
    }
    fixture.fail().await;
    assert_eq!(fixture.local().await, 99);
}

#[tokio::test(start_paused = true)]
async fn dropped_calls_are_not_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    {
        let mut call = pin!(fixture.limiter.try_acquire_n("a", 20));
        assert!(matches!(call.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending));
    }
    sleep(Duration::from_secs(1)).await;
    fixture.fail().await;
    assert_eq!(fixture.local().await, 100);
}

#[tokio::test(start_paused = true)]
async fn policies_that_never_decide_locally_are_not_mirrored() {
    let fixture = start(Registry::builder());
    fixture.fail().await;
    fixture.recover().await;
    for mode in [Allow, Deny] {
        let decision = fixture.limiter.on_store_error(mode).try_acquire_n("a", 20).await.unwrap();
        assert_eq!(decision.source, DecidedBy::Redis);
    }
    fixture.fail().await;
    assert_eq!(fixture.local().await, 100);
}

/// A process that is cut off admits its share for as long as it is cut off, and no more.
#[tokio::test(start_paused = true)]
async fn cut_off_process_admits_its_share() {
    let fixture = start(Registry::builder().instances(2));
    fixture.fail().await;
    let bucket = fixture.registry.limiter("bucket", TokenBucket::per_second(100).burst(100)).unwrap();
    let window = fixture.registry.limiter("window", FixedWindow::new(100, Duration::from_secs(1))).unwrap();
    let (mut by_bucket, mut by_window) = (0, 0);
    for _ in 0..20_000 {
        by_bucket += u64::from(bucket.try_acquire(()).await.is_ok());
        by_window += u64::from(window.try_acquire(()).await.is_ok());
        sleep(Duration::from_millis(1)).await;
    }
    // 50 at once and 50 per second; 50 in each second.
    assert_eq!((by_bucket, by_window), (50 + 20 * 50 - 1, 20 * 50));
}
