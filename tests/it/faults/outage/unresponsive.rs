//! No replies. Some decisions wait for their deadline, then the circuit breaker opens and the others fail at once. Nothing is
//! sent twice.

use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::RedisStore;

use super::fixture::{CountingClient, Fixture, LONG_DEADLINE};
use crate::faults::{MAX_LATENCY, RECOVERS_WITHIN};
use crate::support::proxy::Fault;
use crate::support::server::{Server, run};
use crate::support::until::until;

const CALLERS: usize = 64;
const TIME: Duration = Duration::from_millis(900);
/// How long Redis sleeps or pauses, with a margin for a busy machine.
const SILENCE: Duration = Duration::from_millis(1_900);
/// The most probes of an open breaker. One is made every 100 to 500 ms, and one at a time.
const MAX_PROBES: u64 = 15;

/// Calls between `begin` and `end`. None succeeds.
async fn assert_unanswered(fixture: &Fixture, begin: impl AsyncFnOnce(), end: impl AsyncFnOnce()) {
    let (script_calls, executed) = (fixture.script_calls().await, fixture.executed().await);
    let before = fixture.client.counts();
    let accepted = fixture.proxy.accepted();
    begin().await;
    let calls = fixture.crowd(CALLERS, TIME).await;
    end().await;
    assert!(calls.iter().all(|call| call.remaining.is_err()), "a call succeeded");
    let first = calls.iter().map(|call| call.start).min().expect("there are calls");
    // Later calls may find the breaker open.
    let mut early = calls.iter().filter(|call| call.start < first + RedisStore::DEADLINE);
    let hasty = early.find(|call| call.took < RedisStore::DEADLINE);
    assert!(hasty.is_none(), "it failed before the deadline with a closed breaker: {hasty:?}");
    let late = calls.iter().filter(|call| call.reached_deadline).count() as u64;
    // The first call of each task, and those that start before the first timeout.
    let max = 2 * CALLERS as u64 + MAX_PROBES;
    assert!((1..=max).contains(&late), "{late} of {} decisions waited", calls.len());
    assert!(calls.len() as u64 > 5 * late, "only {} decisions, of which {late} waited", calls.len());

    fixture.recovers().await;
    let since = fixture.client.counts().since(before);
    let after = fixture.script_calls().await;
    let (sent, executed) = (since.succeeded + since.timed_out, fixture.executed().await - executed);
    println!("{late} waited, {} failed early, {executed} executed", since.failed_early);
    assert!(executed <= sent, "{executed} executed of {sent} sent");
    assert_eq!(after.eval, script_calls.eval, "the script is known");
    let connections = fixture.proxy.accepted() - accepted;
    assert!(connections <= MAX_PROBES, "{connections} connections");
    fixture.assert_one_connection().await;
}

#[tokio::test]
async fn paused_process() {
    let fixture = Fixture::start().await;
    assert_unanswered(&fixture, async || fixture.server.pause(), async || fixture.server.resume()).await;
}

#[tokio::test]
async fn paused_process_before_the_first_connection() {
    let server = Server::start();
    server.pause();
    let client = CountingClient::new(&server.url(), RedisStore::DEADLINE);
    for _ in 0..20 {
        let call = client.call().await;
        assert!(call.remaining.is_err() && call.took < MAX_LATENCY);
    }
    let counts = client.counts();
    assert!(counts.timed_out <= 8 && counts.failed_early >= 12, "{counts:?}");
    server.resume();
    until("it answers", RECOVERS_WITHIN, async || client.call().await.remaining).await;
}

/// The most requests in flight on a connection.
const MAX_IN_FLIGHT: usize = 4096;

#[tokio::test]
async fn stalled_server_gets_bounded_backlog() {
    let fixture = Fixture::start_with_deadline(LONG_DEADLINE).await;
    let before = fixture.script_calls().await.evalsha;
    fixture.server.pause();
    let calls: Vec<_> = (0..2 * MAX_IN_FLIGHT)
        .map(|_| {
            let client = Arc::clone(&fixture.client);
            tokio::spawn(async move { client.call().await })
        })
        .collect();
    for call in calls {
        assert!(call.await.expect("no decision panics").remaining.is_err());
    }
    fixture.server.resume();
    fixture.recovers().await;
    fixture.assert_one_connection().await;
    let succeeded = fixture.client.counts().succeeded;
    let executed = fixture.script_calls().await.evalsha - before;
    println!("{executed} executed of {}", 2 * MAX_IN_FLIGHT);
    assert!(executed <= MAX_IN_FLIGHT as u64 + MAX_PROBES + succeeded, "{executed} executed");
}

#[tokio::test]
async fn paused_clients() {
    let fixture = Fixture::start().await;
    let millis = SILENCE.as_millis().to_string();
    let begin = async || fixture.server.command::<()>(&["CLIENT", "PAUSE", &millis, "ALL"]).await;
    // The pause cannot be ended early, as no command is executed.
    assert_unanswered(&fixture, begin, async || tokio::time::sleep(SILENCE - TIME).await).await;
}

#[tokio::test]
async fn sleeping_server() {
    let fixture = Fixture::start().await;
    let mut connection = fixture.server.connect().await;
    let sleep = tokio::spawn(async move {
        let seconds = SILENCE.as_secs_f64().to_string();
        tokio::time::sleep(Duration::from_millis(100)).await;
        run::<()>(&mut connection, &["DEBUG", "SLEEP", &seconds]).await;
    });
    let begin = async || tokio::time::sleep(Duration::from_millis(200)).await;
    assert_unanswered(&fixture, begin, async || sleep.await.expect("it wakes up")).await;
}

async fn assert_unanswered_under(fault: Fault) {
    let fixture = Fixture::start().await;
    let end = async || {
        fixture.proxy.set(Fault::Pass);
        // On a connection that lost a reply, the next reply would be matched to the wrong request.
        if matches!(fault, Fault::SwallowReplies) {
            fixture.proxy.reset().await;
        }
    };
    assert_unanswered(&fixture, async || fixture.proxy.set(fault), end).await;
}

#[tokio::test]
async fn black_hole() {
    assert_unanswered_under(Fault::BlackHole).await;
}

#[tokio::test]
async fn stalled_network() {
    assert_unanswered_under(Fault::Stall).await;
}

#[tokio::test]
async fn latency_above_the_deadline() {
    assert_unanswered_under(Fault::Latency(Duration::from_millis(500))).await;
}

#[tokio::test]
async fn swallowed_replies() {
    assert_unanswered_under(Fault::SwallowReplies).await;
}
