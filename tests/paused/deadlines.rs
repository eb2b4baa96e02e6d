//! Decisions by a Redis that does not answer end exactly at their deadline.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Key, RedisStore};
use ratelimits::{DecidedBy, Error, FixedWindow, OnStoreError, Policy, Registry, TokenBucket};
use tokio::time::{Instant, advance, sleep};

use crate::concurrent::spawn_all;
use crate::faulty_server::{Fault, FaultyServer};

pub(crate) const DEADLINE: Duration = RedisStore::DEADLINE;

/// Returns how a decision ended and how long it took.
pub(crate) async fn decide(store: &RedisStore) -> (Result<(), String>, Duration) {
    let spec = Policy::from(FixedWindow::new(5, Duration::from_secs(60))).spec().unwrap();
    let charge = Charge { key: Key::raw("{k}"), spec, cost: 1, wait: 0, shadow: false };
    let begin = Instant::now();
    let outcome = store.decide(&[charge]).await;
    (outcome.map(drop).map_err(|error| error.to_string()), begin.elapsed())
}

/// Returns a working server and a store that is connected to it.
pub(crate) async fn connected() -> (FaultyServer, RedisStore) {
    let server = FaultyServer::new(Fault::None);
    let store = RedisStore::over(server.clone());
    assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    (server, store)
}

pub(crate) async fn assert_pending<F: Future>(mut call: Pin<&mut F>) {
    assert!(poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await);
}

#[tokio::test(start_paused = true)]
async fn unanswered_decisions_end_at_their_deadline() {
    let silent = [
        Fault::NoConnection,
        Fault::NothingRead,
        Fault::NoHello,
        Fault::NoPing,
        Fault::NoReply,
        Fault::HalfReply,
        Fault::Slow(DEADLINE + Duration::from_millis(1)),
        Fault::NoReplyToEval,
    ];
    for fault in silent {
        let store = RedisStore::over(FaultyServer::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, DEADLINE, "{fault:?} on the first connection: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
    let while_connected = [
        Fault::NothingRead,
        Fault::NoReply,
        Fault::HalfReply,
        Fault::Slow(2 * DEADLINE),
        Fault::NoReplyToEval,
    ];
    for fault in while_connected {
        let (server, store) = connected().await;
        server.set(fault);
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, DEADLINE, "{fault:?} on an open connection: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn answers_end_decisions_before_the_deadline() {
    let in_time = DEADLINE - Duration::from_millis(1);
    let (server, store) = connected().await;
    server.set(Fault::Slow(in_time));
    assert_eq!(decide(&store).await, (Ok(()), in_time));

    for fault in [
        Fault::Refused,
        Fault::Closed,
        Fault::Error("OOM command not allowed"),
        Fault::Error("READONLY You can't write against a read only replica."),
        Fault::Error("LOADING Redis is loading the dataset in memory"),
        Fault::Error("MASTERDOWN Link with MASTER is down"),
        Fault::Error("NOAUTH Authentication required."),
        Fault::Error("BUSY Redis is busy running a script."),
        Fault::Error("CLUSTERDOWN The cluster is down"),
        Fault::Error("ERR something else"),
    ] {
        let store = RedisStore::over(FaultyServer::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, Duration::ZERO, "{fault:?}: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn silent_server_delays_only_a_few_calls() {
    for fault in [Fault::NoReply, Fault::NothingRead, Fault::NoConnection, Fault::NoHello] {
        let (server, store) = match fault {
            Fault::NoConnection | Fault::NoHello => {
                let server = FaultyServer::new(fault);
                (server.clone(), RedisStore::over(server))
            }
            _ => connected().await,
        };
        server.set(fault);
        let dialled = server.dialled();
        let (mut waited, mut calls) = (0, 0);
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            let (outcome, took) = decide(&store).await;
            // Shorter if a connection attempt, which has its own timeout, is given up meanwhile.
            assert!(outcome.is_err() && took <= DEADLINE, "{fault:?}: {took:?}");
            waited += usize::from(!took.is_zero());
            calls += 1;
            advance(Duration::from_millis(1)).await;
        }
        // A few in a row, and then one at a time, fewer than ten a second.
        assert!(waited <= 5 + 40 && calls > 50 * waited, "{fault:?}: {waited} of {calls} calls waited");
        assert!(server.dialled() - dialled <= 40, "{fault:?}: {} connections", server.dialled());
        server.set(Fault::None);
        sleep(Duration::from_millis(500)).await;
        // The first call may find a dead connection.
        let _ = decide(&store).await;
        sleep(Duration::from_millis(500)).await;
        assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn fallback_modes_apply_at_the_deadline() {
    for fault in [Fault::NoConnection, Fault::NoHello, Fault::NoReply, Fault::HalfReply] {
        for deadline in [Duration::from_millis(1), DEADLINE, Duration::from_secs(3)] {
            let registry = || Registry::builder().deadline(deadline).over(FaultyServer::new(fault));
            let limiter = |mode| {
                let limiter = registry().limiter("a", TokenBucket::per_second(1).burst(2)).unwrap();
                limiter.on_store_error(mode)
            };
            // Connection attempts time out after a second.
            let end = if matches!(fault, Fault::NoConnection | Fault::NoHello) {
                deadline.min(Duration::from_secs(1))
            } else {
                deadline
            };
            let begin = Instant::now();
            let decision = limiter(OnStoreError::Local).try_acquire("k").await.unwrap();
            assert_eq!((decision.source, decision.remaining, begin.elapsed()), (DecidedBy::Local, 1, end));

            let begin = Instant::now();
            let decision = limiter(OnStoreError::Allow).try_acquire("k").await.unwrap();
            assert_eq!((decision.source, begin.elapsed()), (DecidedBy::Allowed, end));

            let begin = Instant::now();
            let error = limiter(OnStoreError::Deny).try_acquire("k").await.unwrap_err();
            assert!(matches!(error, Error::Store(_)) && begin.elapsed() == end, "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_counts_against_the_timeout() {
    let registry = Registry::builder().over(FaultyServer::new(Fault::NoReply));
    let limiter = registry.limiter("a", TokenBucket::per_second(1).burst(1)).unwrap();
    let wait = |time| limiter.acquire_timeout("k", time);
    let begin = Instant::now();
    // The first takes the permit at the deadline, the second waits for the next one from then on.
    let seconds = Duration::from_secs;
    let (first, second) = tokio::join!(wait(seconds(5)), wait(seconds(5)));
    assert!(first.unwrap().waited.is_zero());
    assert_eq!(second.unwrap().waited, seconds(1));
    assert_eq!(begin.elapsed(), DEADLINE + seconds(1));
    // After 100 ms on Redis, the rest of the timeout is 1 ms too short.
    let begin = Instant::now();
    assert!(wait(Duration::from_millis(999)).await.unwrap_err().is_limited());
    assert_eq!(begin.elapsed(), DEADLINE);
    // Redis has not answered for a second, so the breaker is open.
    assert_eq!(wait(seconds(1)).await.unwrap().waited, seconds(1) - DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn concurrent_calls_share_the_deadline() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let store = Arc::new(store);
    let calls = spawn_all(1000, || {
        let store = Arc::clone(&store);
        async move { decide(&store).await.0 }
    });
    for call in calls {
        let (outcome, took) = call.await.unwrap();
        assert!(outcome.is_err());
        assert_eq!(took, DEADLINE);
    }
    let (_, took) = decide(&store).await;
    assert!(took.is_zero(), "the breaker is open");
}

#[tokio::test(start_paused = true)]
async fn failing_server_is_dialled_at_a_limited_rate() {
    for fault in [Fault::Refused, Fault::Closed, Fault::ClosedAfterReply] {
        let server = FaultyServer::new(fault);
        let store = RedisStore::over(server.clone());
        let end = Instant::now() + Duration::from_secs(10);
        while Instant::now() < end {
            let (outcome, took) = decide(&store).await;
            assert!(took.is_zero() && (fault == Fault::ClosedAfterReply || outcome.is_err()));
            advance(Duration::from_millis(1)).await;
        }
        let dialled = server.dialled();
        assert!((10..=100).contains(&dialled), "{fault:?}: {dialled} attempts in 10 s");
    }
}

#[tokio::test(start_paused = true)]
async fn closed_idle_connections_are_no_outage() {
    let (server, store) = connected().await;
    for _ in 0..20 {
        server.hang_up();
        sleep(Duration::from_secs(10)).await;
        assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn deadline_is_at_most_an_hour() {
    let server = FaultyServer::new(Fault::NoReply);
    let registry = Registry::builder().deadline(Duration::MAX).over(server);
    let limiter = registry.limiter("a", FixedWindow::new(1, Duration::from_secs(60))).unwrap();
    let begin = Instant::now();
    assert_eq!(limiter.try_acquire(()).await.unwrap().source, DecidedBy::Local);
    assert_eq!(begin.elapsed(), Duration::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn unpolled_probe_does_not_block_recovery() {
    let server = FaultyServer::new(Fault::Refused);
    let store = RedisStore::over(server.clone());
    while decide(&store).await.0.is_ok() || server.dialled() < 2 {}
    sleep(Duration::from_secs(1)).await;
    // This call probes whether the server is back.
    server.set(Fault::NoReply);
    let mut stuck = Box::pin(decide(&store));
    assert_pending(stuck.as_mut()).await;
    server.set(Fault::None);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    drop(stuck);
}

/// A busy or suspended process may poll a call only after its deadline.
#[tokio::test(start_paused = true)]
async fn late_poll_takes_an_answer_in_time() {
    let (server, store) = connected().await;
    let in_time = DEADLINE - Duration::from_millis(1);
    server.set(Fault::Slow(in_time));
    let mut call = Box::pin(decide(&store));
    assert_pending(call.as_mut()).await;
    sleep(2 * DEADLINE).await;
    assert_eq!(call.await, (Ok(()), 2 * DEADLINE));
}

/// The thread is blocked before the task that sends batches runs.
#[tokio::test(start_paused = true)]
async fn calls_that_are_not_sent_in_time_blame_this_process() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let mut calls: Vec<_> = (0..20).map(|_| Box::pin(decide(&store))).collect();
    for call in &mut calls {
        assert_pending(call.as_mut()).await;
    }
    // The first poll advances the clock, and the next would let the task run before.
    let mut blocked = pin!(advance(2 * DEADLINE));
    assert_pending(blocked.as_mut()).await;
    let mut errors = Vec::new();
    for call in calls {
        errors.push(call.await.0.unwrap_err());
    }
    let not_sent =
        "the call was not sent before the deadline: this process is overloaded, or its threads are blocked";
    assert_eq!(errors.iter().filter(|error| *error == not_sent).count(), 12, "{errors:#?}");
    let late = "Redis did not respond before the deadline, 100 ms before this process noticed: it is overloaded, or its \
                threads are blocked";
    assert_eq!(errors.iter().filter(|error| *error == late).count(), 8, "{errors:#?}");
}
