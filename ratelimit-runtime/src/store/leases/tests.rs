mod ending;
mod simulation;
mod slack;
mod waiting;

use tokio::time::advance;

use super::shard::{MAX_KEYS, SWEEP_PAUSE};
use super::*;
use crate::policy::{FixedWindow, Policy, TokenBucket};

const SIZE: u64 = 100;
const LEASE: LeaseSize = LeaseSize::Permits(SIZE);

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn charge(key: &str, policy: impl Into<Policy>, cost: u64) -> Charge {
    let spec = policy.into().spec().unwrap();
    Charge { key: Key::raw(key), spec, cost, wait: 0, shadow: false }
}

/// A hundred permits refill in 100 ms.
fn bucket(cost: u64) -> Charge {
    charge("a", TokenBucket::per_second(1000).burst(200), cost)
}

fn granted(reset_after: Duration) -> Verdict {
    Verdict {
        admitted: true,
        limit: 200,
        remaining: 100,
        reset_after: micros(reset_after),
        ..Verdict::default()
    }
}

fn refused(remaining: u64, retry_after: Duration) -> Verdict {
    Verdict { remaining, retry_after: Some(micros(retry_after)), ..Verdict::default() }
}

fn micros(time: Duration) -> u64 {
    time.as_micros() as u64
}

/// Joins as the first call that leases, after one that asks for itself.
fn first(leases: &Arc<Leases>, charge: &Charge) -> (oneshot::Receiver<Reply>, Fetch) {
    let (reply, fetch) = leases.join(charge, LEASE).or_else(|| leases.join(charge, LEASE)).unwrap();
    (reply, fetch.unwrap())
}

fn window(period: Duration) -> Charge {
    charge("a", FixedWindow::new(200, period), 1)
}

/// Returns leases of which one call has got a permit, and the time for the reply was this.
async fn leased(charge: &Charge, latency: Duration) -> Arc<Leases> {
    let leases = Arc::<Leases>::default();
    let (reply, mut fetch) = first(&leases, charge);
    assert_eq!(fetch.next(), Some(SIZE));
    advance(latency).await;
    fetch.granted(SIZE, &granted(ms(400)));
    reply.await.unwrap().unwrap().spend();
    assert_eq!(fetch.next(), None);
    leases
}

fn spend(leases: &Arc<Leases>, charge: &Charge) -> bool {
    leases.spend(charge).is_some()
}

#[tokio::test(start_paused = true)]
async fn leases_live_since_they_were_asked_for() {
    for (charge, life) in [(bucket(1), ms(100)), (window(ms(500)), ms(400))] {
        let leases = leased(&charge, ms(90)).await;
        advance(life - ms(90) - Duration::from_micros(1)).await;
        assert!(spend(&leases, &charge));
        advance(Duration::from_micros(1)).await;
        assert!(!spend(&leases, &charge), "{charge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn leases_live_for_a_second_at_most() {
    for charge in [window(ms(86_400_000)), charge("a", TokenBucket::per_second(1).burst(200), 1)] {
        let leases = Arc::<Leases>::default();
        let (_reply, mut fetch) = first(&leases, &charge);
        fetch.next();
        fetch.granted(SIZE, &granted(ms(80_000_000)));
        advance(ms(999)).await;
        assert!(spend(&leases, &charge));
        advance(ms(1)).await;
        assert!(!spend(&leases, &charge), "{charge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_next_lease_is_asked_for_when_a_quarter_is_left() {
    let leases = leased(&bucket(1), ms(0)).await;
    let (verdict, fetch) = leases.spend(&bucket(74)).unwrap();
    assert_eq!((verdict.remaining, fetch.is_none()), (125, true));
    let (verdict, fetch) = leases.spend(&bucket(1)).unwrap();
    assert_eq!(verdict.remaining, 124);
    let mut fetch = fetch.unwrap();
    assert!(leases.spend(&bucket(1)).unwrap().1.is_none(), "only one asks");
    assert_eq!(fetch.next(), Some(SIZE));
    fetch.granted(SIZE, &granted(ms(400)));
    assert_eq!(fetch.next(), None);
    assert!(!spend(&leases, &bucket(124)));
    assert!(spend(&leases, &bucket(123)), "of both leases");
}

#[tokio::test(start_paused = true)]
async fn rare_calls_ask_for_themselves() {
    for (charge, life) in [(bucket(1), 100), (window(ms(500)), 500), (window(ms(86_400_000)), 1000)] {
        let leases = Arc::<Leases>::default();
        assert!(leases.join(&charge, LEASE).is_none(), "the first call");
        for (pause, leases_more) in
            [(life, false), (life, false), (life - 1, true), (life, false), (5000, false), (0, true)]
        {
            advance(ms(pause)).await;
            let joined = leases.join(&charge, LEASE);
            assert_eq!(joined.is_some(), leases_more, "after {pause} ms");
        }
    }
}

/// One that is taken shortly before a window ends, and one of the last permit of a bucket.
#[tokio::test(start_paused = true)]
async fn calls_between_short_leases_are_not_rare() {
    for (charge, permits) in [(window(ms(500)), SIZE), (bucket(1), 1)] {
        let leases = Arc::<Leases>::default();
        let (reply, mut fetch) = first(&leases, &charge);
        fetch.next();
        fetch.granted(permits, &granted(ms(1)));
        assert!(reply.await.unwrap().is_ok());
        assert_eq!(fetch.next(), None);
        advance(ms(50)).await;
        assert!(leases.join(&charge, LEASE).is_some(), "{charge:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn refusals_pause_leases_for_ever_longer() {
    let (leases, charge) = (Arc::<Leases>::default(), bucket(1));
    for (retry_after, pause) in
        [(1, 10), (1, 20), (50, 50), (1, 100), (1, 200), (1, 400), (1, 800), (1, 1000), (5000, 1000)]
    {
        let (_, mut fetch) = first(&leases, &charge);
        assert_eq!(fetch.next(), Some(SIZE));
        fetch.refused(&refused(0, ms(retry_after)));
        assert_eq!(fetch.next(), None);
        advance(ms(pause) - Duration::from_micros(1)).await;
        assert!(leases.join(&charge, LEASE).is_none(), "{pause} ms");
        advance(Duration::from_micros(1)).await;
    }
    let (_, mut fetch) = first(&leases, &charge);
    fetch.next();
    fetch.granted(SIZE, &granted(ms(400)));
    fetch.failed(&StoreError::transient("down"));
    assert_eq!(fetch.next(), None);
    assert!(leases.join(&charge, LEASE).is_none());
    advance(ms(10)).await;
    assert!(leases.join(&charge, LEASE).is_some(), "an admission ends the count");
}

#[tokio::test(start_paused = true)]
async fn failures_are_those_of_the_calls_that_wait() {
    let leases = Arc::<Leases>::default();
    let (reply, mut fetch) = first(&leases, &bucket(1));
    fetch.next();
    fetch.failed(&StoreError::transient("down"));
    let error = reply.await.unwrap().err().unwrap();
    assert_eq!(error.to_string(), "down");
    assert_eq!(fetch.next(), None);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_dropped_lets_calls_ask_for_themselves() {
    let leases = Arc::<Leases>::default();
    let (reply, fetch) = first(&leases, &bucket(1));
    drop(fetch);
    assert!(reply.await.is_err());
    assert!(leases.join(&bucket(1), LEASE).is_some_and(|(_, fetch)| fetch.is_some()));
}

#[tokio::test(start_paused = true)]
async fn permits_of_dropped_calls_return() {
    let leases = Arc::<Leases>::default();
    let (reply, mut fetch) = first(&leases, &bucket(60));
    fetch.next();
    fetch.granted(SIZE, &granted(ms(400)));
    assert!(!spend(&leases, &bucket(41)));
    drop(reply.await.unwrap());
    assert!(spend(&leases, &bucket(100)));
}

#[tokio::test(start_paused = true)]
async fn resets_end_leases_and_those_on_their_way() {
    let leases = leased(&bucket(1), ms(0)).await;
    drop(leases.end_after(&bucket(1).key));
    assert!(!spend(&leases, &bucket(1)));
    advance(ms(1)).await;

    let (reply, mut fetch) = first(&leases, &bucket(1));
    fetch.next();
    drop(leases.end_after(&bucket(1).key));
    fetch.granted(SIZE, &granted(ms(400)));
    assert!(reply.await.unwrap().is_ok());
    assert!(!spend(&leases, &bucket(1)));
}

#[tokio::test(start_paused = true)]
async fn leases_are_of_one_policy() {
    let leases = leased(&bucket(1), ms(0)).await;
    let other = charge("a", TokenBucket::per_second(2000).burst(200), 1);
    assert!(!spend(&leases, &other) && leases.join(&other, LEASE).is_none());
    assert!(spend(&leases, &bucket(1)));
    advance(ms(100)).await;
    leases.end(&bucket(1));
    assert!(leases.join(&other, LEASE).is_none() && leases.join(&other, LEASE).is_some());
}

#[tokio::test(start_paused = true)]
async fn memory_is_bounded() {
    let leases = Arc::<Leases>::default();
    let mut keys = 0..;
    // Keys that are idle make room for others.
    for _ in 0..10 {
        for key in keys.by_ref().take(SHARDS * MAX_KEYS / 2) {
            let charge = Charge { key: Key::raw(key.to_string()), ..bucket(1) };
            assert!(leases.join(&charge, LEASE).is_none());
        }
        advance(SWEEP_PAUSE).await;
    }
    let kept = || leases.0.get().unwrap().iter().map(|shard| shard.lock().unwrap().keys.len());
    assert!(kept().all(|kept| kept < MAX_KEYS));
    // Keys that are not, do not.
    let join = |key: u64| {
        let charge = Charge { key: Key::raw(key.to_string()), ..bucket(1) };
        leases.join(&charge, LEASE).or_else(|| leases.join(&charge, LEASE))
    };
    let held: Vec<_> = keys.take(2 * SHARDS * MAX_KEYS).map(join).collect();
    assert!(kept().all(|kept| kept <= MAX_KEYS));
    assert!(held.iter().any(Option::is_none) && held.iter().flatten().count() > SHARDS * MAX_KEYS / 2);
}
