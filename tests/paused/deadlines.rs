//! Decisions in a Redis that does not answer, on paused time: each ends at its deadline, to the millisecond, or at once.

use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Key, RedisStore};
use ratelimits::{Error, FixedWindow, OnStoreError, Policy, Registry, Source, TokenBucket};
use tokio::time::{Instant, advance, sleep};

use crate::faulty::{Fault, Faulty};

const DEADLINE: Duration = RedisStore::DEADLINE;

/// How a decision ended, and when.
async fn decide(store: &RedisStore) -> (Result<(), String>, Duration) {
    let spec = Policy::from(FixedWindow::new(5, Duration::from_secs(60))).spec().unwrap();
    let charge = Charge { key: Key::raw("{k}"), spec, cost: 1, wait: 0, shadow: false };
    let begun = Instant::now();
    let outcome = store.decide(&[charge]).await;
    (outcome.map(drop).map_err(|error| error.to_string()), begun.elapsed())
}

/// A server without a fault, and a connection to it.
async fn connected() -> (Faulty, RedisStore) {
    let server = Faulty::new(Fault::None);
    let store = RedisStore::over(server.clone());
    assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    (server, store)
}

#[tokio::test(start_paused = true)]
async fn every_decision_ends_at_its_deadline_whatever_is_not_answered() {
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
        let store = RedisStore::over(Faulty::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, DEADLINE, "{fault:?}, on the first connection: {outcome:?}");
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
        assert_eq!(took, DEADLINE, "{fault:?}, on a connection that stood: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_ends_with_its_answer() {
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
        let store = RedisStore::over(Faulty::new(fault));
        let (outcome, took) = decide(&store).await;
        assert_eq!(took, Duration::ZERO, "{fault:?}: {outcome:?}");
        assert!(outcome.is_err(), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_silent_costs_some_calls_their_deadline_and_the_others_nothing() {
    for fault in [Fault::NoReply, Fault::NothingRead, Fault::NoConnection, Fault::NoHello] {
        let (server, store) = match fault {
            Fault::NoConnection | Fault::NoHello => {
                let server = Faulty::new(fault);
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
            // Earlier where an attempt to connect is given up meanwhile, which has its own time.
            assert!(outcome.is_err() && took <= DEADLINE, "{fault:?}: {took:?}");
            waited += usize::from(!took.is_zero());
            calls += 1;
            advance(Duration::from_millis(1)).await;
        }
        // Some in a row, and then one at a time, less than ten a second.
        assert!(waited <= 5 + 40 && calls > 50 * waited, "{fault:?}: {waited} of {calls} calls waited");
        assert!(server.dialled() - dialled <= 40, "{fault:?}: {} connections", server.dialled());
        server.set(Fault::None);
        sleep(Duration::from_millis(500)).await;
        // The first call finds a connection that is dead, or opens one.
        let _ = decide(&store).await;
        sleep(Duration::from_millis(500)).await;
        assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO), "{fault:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_otherwise_is_decided_at_the_deadline() {
    for fault in [Fault::NoConnection, Fault::NoHello, Fault::NoReply, Fault::HalfReply] {
        for deadline in [Duration::from_millis(1), DEADLINE, Duration::from_secs(3)] {
            let registry = || Registry::builder().deadline(deadline).over(Faulty::new(fault));
            let limiter = |mode| {
                let limiter = registry().limiter("a", TokenBucket::per_second(1).burst(2)).unwrap();
                limiter.on_store_error(mode)
            };
            // An attempt to connect has its own end, at which nobody waits for it any more.
            let end = if matches!(fault, Fault::NoConnection | Fault::NoHello) {
                deadline.min(Duration::from_secs(1))
            } else {
                deadline
            };
            let begun = Instant::now();
            let decision = limiter(OnStoreError::Local).try_acquire("k", 1).await.unwrap();
            assert_eq!((decision.source, decision.remaining, begun.elapsed()), (Source::Local, 1, end));

            let begun = Instant::now();
            let decision = limiter(OnStoreError::Allow).try_acquire("k", 1).await.unwrap();
            assert_eq!((decision.source, begun.elapsed()), (Source::Allowed, end));

            let begun = Instant::now();
            let error = limiter(OnStoreError::Deny).try_acquire("k", 1).await.unwrap_err();
            assert!(matches!(error, Error::Store(_)) && begun.elapsed() == end, "{error}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_a_part_of_what_a_call_waits_and_does_not_bound_it() {
    let registry = Registry::builder().over(Faulty::new(Fault::NoReply));
    let limiter = registry.limiter("a", TokenBucket::per_second(1).burst(1)).unwrap();
    let wait = |time| limiter.acquire_timeout("k", 1, time);
    let begun = Instant::now();
    // The first takes the permit at the deadline. The second waits for the next one from there on.
    let seconds = Duration::from_secs;
    let (first, second) = tokio::join!(wait(seconds(5)), wait(seconds(5)));
    assert!(first.unwrap().waited.is_zero());
    assert_eq!(second.unwrap().waited, seconds(1));
    assert_eq!(begun.elapsed(), DEADLINE + seconds(1));
    // Of what it would wait a call spends 100 ms on Redis, and the rest is just not enough.
    let begun = Instant::now();
    assert!(wait(Duration::from_millis(999)).await.unwrap_err().is_limited());
    assert_eq!(begun.elapsed(), DEADLINE);
    // Redis has not answered for a second: nobody asks it now.
    assert_eq!(wait(seconds(1)).await.unwrap().waited, seconds(1) - DEADLINE);
}

#[tokio::test(start_paused = true)]
async fn calls_at_once_end_at_once_at_their_deadline() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let store = Arc::new(store);
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let store = Arc::clone(&store);
            tokio::spawn(async move { decide(&store).await })
        })
        .collect();
    for call in calls {
        let (outcome, took) = call.await.unwrap();
        assert!(outcome.is_err());
        assert_eq!(took, DEADLINE);
    }
    let (_, took) = decide(&store).await;
    assert!(took.is_zero(), "the breaker is open");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_refuses_is_asked_less_than_ten_times_a_second() {
    let server = Faulty::new(Fault::Refused);
    let store = RedisStore::over(server.clone());
    let end = Instant::now() + Duration::from_secs(10);
    while Instant::now() < end {
        assert!(decide(&store).await.0.is_err());
        advance(Duration::from_millis(1)).await;
    }
    let dialled = server.dialled();
    assert!((10..=100).contains(&dialled), "{dialled} attempts in 10 s");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_closes_each_connection_is_not_stormed() {
    for fault in [Fault::Closed, Fault::ClosedAfterReply] {
        let server = Faulty::new(fault);
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
async fn a_server_that_closes_idle_connections_is_well() {
    let (server, store) = connected().await;
    for _ in 0..20 {
        server.hang_up();
        sleep(Duration::from_secs(10)).await;
        assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    }
}

#[tokio::test(start_paused = true)]
async fn the_longest_deadline_is_an_hour() {
    let server = Faulty::new(Fault::NoReply);
    let registry = Registry::builder().deadline(Duration::MAX).over(server);
    let limiter = registry.limiter("a", FixedWindow::new(1, Duration::from_secs(60))).unwrap();
    let begun = Instant::now();
    assert_eq!(limiter.try_acquire((), 1).await.unwrap().source, Source::Local);
    assert_eq!(begun.elapsed(), Duration::from_secs(3600));
}

#[tokio::test(start_paused = true)]
async fn a_call_that_nobody_polls_does_not_keep_others_from_finding_out() {
    let server = Faulty::new(Fault::Refused);
    let store = RedisStore::over(server.clone());
    while decide(&store).await.0.is_ok() || server.dialled() < 2 {}
    sleep(Duration::from_secs(1)).await;
    // The one that would find out.
    server.set(Fault::NoReply);
    let mut stuck = Box::pin(decide(&store));
    assert!(std::future::poll_fn(|context| Poll::Ready(stuck.as_mut().poll(context).is_pending())).await);
    server.set(Fault::None);
    sleep(Duration::from_secs(2)).await;
    assert_eq!(decide(&store).await, (Ok(()), Duration::ZERO));
    drop(stuck);
}

/// A process that stands still, or is busy, may look at its calls when their time is over.
#[tokio::test(start_paused = true)]
async fn an_answer_that_is_there_when_a_call_is_looked_at_late_is_taken() {
    let (server, store) = connected().await;
    let in_time = DEADLINE - Duration::from_millis(1);
    server.set(Fault::Slow(in_time));
    let begun = Instant::now();
    let mut call = Box::pin(decide(&store));
    assert!(std::future::poll_fn(|context| Poll::Ready(call.as_mut().poll(context).is_pending())).await);
    sleep(2 * DEADLINE).await;
    assert!(matches!(call.await, (Ok(()), took) if took == 2 * DEADLINE), "{:?}", begun.elapsed());
}
