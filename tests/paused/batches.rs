//! Decisions that share calls to a Redis that does not answer, or is slow.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;

use crate::deadlines::{DEADLINE, assert_pending, connected, decide};
use crate::faulty_server::Fault;

#[tokio::test(start_paused = true)]
async fn calls_of_one_batch_have_their_own_deadlines() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let store = Arc::new(store);
    let calls: Vec<_> = (0..30_u32)
        .map(|i| {
            let store = Arc::clone(&store);
            tokio::spawn(async move {
                sleep(Duration::from_millis(1) * i).await;
                decide(&store).await
            })
        })
        .collect();
    for call in calls {
        let (outcome, took) = call.await.unwrap();
        assert!(outcome.is_err());
        assert_eq!(took, DEADLINE);
    }
}

/// Redis may be far away, so that many calls are in flight while no reply is late.
#[tokio::test(start_paused = true)]
async fn calls_are_sent_soon_however_many_are_in_flight() {
    let (server, store) = connected().await;
    server.set(Fault::NoReply);
    let store = Arc::new(store);
    let before = server.commands();
    for sent in 1..=25 {
        let store = Arc::clone(&store);
        tokio::spawn(async move { decide(&store).await });
        sleep(Duration::from_millis(3)).await;
        assert_eq!(server.commands() - before, sent);
    }
}

/// The calls of a batch that Redis refuses to run are sent alone, later.
#[tokio::test(start_paused = true)]
async fn calls_that_have_given_up_are_not_sent_alone() {
    let (server, store) = connected().await;
    let latency = DEADLINE / 20;
    server.set(Fault::SlowError(latency, "NOPERM No permissions to access a key"));
    let before = server.commands();
    let mut calls: Vec<_> = (0..11).map(|_| Box::pin(decide(&store))).collect();
    for call in &mut calls {
        assert_pending(call.as_mut()).await;
    }
    // Eight are sent at once, and the others as a batch, which the server begins after its replies to them.
    sleep(8 * latency + latency / 2).await;
    assert_eq!(server.commands() - before, 9);
    calls.truncate(9);
    for call in calls {
        assert!(call.await.0.is_err());
    }
    sleep(DEADLINE).await;
    assert_eq!(server.commands() - before, 10);
}
