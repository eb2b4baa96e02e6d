//! Connections that are slow, break, or are refused, and lost scripts.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::RedisStore;

use super::fixture::{CountingClient, Fixture, LONG_DEADLINE, ScriptCalls};
use crate::faults::{MAX_LATENCY, RECOVERS_WITHIN};
use crate::support::proxy::Fault;
use crate::support::until::until;

const MOMENT: Duration = Duration::from_millis(300);

/// What was charged, executed and decided at a moment without a fault.
struct Accounts {
    remaining: u64,
    executed: u64,
    decided: u64,
}

impl Accounts {
    async fn now(fixture: &Fixture) -> Accounts {
        let remaining = fixture.recovers().await;
        let executed = fixture.executed().await;
        Accounts { remaining, executed, decided: fixture.client.counts().total() }
    }

    /// Asserts that since then no decision was sent twice, and no charge made without one.
    async fn assert_sent_once(&self, fixture: &Fixture) {
        let now = Accounts::now(fixture).await;
        let charged = self.remaining - now.remaining;
        let (executed, decided) = (now.executed - self.executed, now.decided - self.decided);
        println!("{charged} charged, {executed} executed, {decided} decided");
        assert!(charged <= executed && executed <= decided, "{charged} of {executed} of {decided}");
    }
}

async fn assert_answered(fixture: &Fixture, callers: usize, min: Duration) {
    let calls = fixture.crowd(callers, MOMENT).await;
    let wrong = calls.iter().find(|call| call.remaining.is_err() || call.took < min);
    assert!(wrong.is_none(), "{wrong:?}");
}

#[tokio::test]
async fn latency_below_the_deadline() {
    let fixture = Fixture::start_with_deadline(LONG_DEADLINE).await;
    fixture.proxy.set(Fault::Latency(Duration::from_millis(100)));
    assert_answered(&fixture, 8, Duration::from_millis(200)).await;
    fixture.proxy.set(Fault::Pass);
    fixture.recovers().await;
}

#[tokio::test]
async fn replies_in_single_bytes() {
    let fixture = Fixture::start_with_deadline(LONG_DEADLINE).await;
    fixture.proxy.set(Fault::Sliced);
    assert_answered(&fixture, 1, Duration::ZERO).await;
    fixture.proxy.set(Fault::Pass);
    fixture.recovers().await;
}

/// Closes connections five times under load.
async fn assert_survives_closing(fixture: &Fixture, close: impl AsyncFn()) {
    let accounts = Accounts::now(fixture).await;
    let closing = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            close().await;
        }
    };
    let (calls, ()) = tokio::join!(fixture.crowd(64, 3 * MOMENT), closing);
    accounts.assert_sent_once(fixture).await;
    assert!(calls.iter().any(|call| call.remaining.is_ok()), "no call succeeded in between");
    fixture.assert_one_connection().await;
}

#[tokio::test]
async fn connection_resets_under_load() {
    let fixture = Fixture::start().await;
    let accepted = fixture.proxy.accepted();
    assert_survives_closing(&fixture, async || fixture.proxy.reset().await).await;
    let connections = fixture.proxy.accepted() - accepted;
    assert!(connections <= 15, "{connections} connections after 5 resets");
}

#[tokio::test]
async fn killed_clients_under_load() {
    let fixture = Fixture::start().await;
    assert_survives_closing(&fixture, async || fixture.server.kill_clients().await).await;
}

#[tokio::test]
async fn half_closed_connections() {
    let fixture = Fixture::start().await;
    let accounts = Accounts::now(&fixture).await;
    for _ in 0..3 {
        fixture.proxy.half_close();
        fixture.crowd(8, Duration::from_millis(50)).await;
        fixture.recovers().await;
    }
    accounts.assert_sent_once(&fixture).await;
    fixture.assert_one_connection().await;
}

#[tokio::test]
async fn refused_connections() {
    let fixture = Fixture::start().await;
    let before = fixture.client.counts();
    fixture.proxy.cut().await;
    let calls = fixture.crowd(8, 2 * MOMENT).await;
    assert!(calls.iter().all(|call| call.remaining.is_err()), "nothing listens");
    assert_eq!(fixture.client.counts().since(before).succeeded, 0);
    let waited = calls.iter().filter(|call| call.reached_deadline).count();
    assert!(waited * 10 < calls.len(), "{waited} of {} waited for a refused connection", calls.len());
    fixture.proxy.listen().await;
    fixture.recovers().await;
}

#[tokio::test]
async fn decision_with_lost_reply_charges_once() {
    for fault in [Fault::SwallowNextThenReset, Fault::SwallowReplies] {
        let fixture = Fixture::start_with_deadline(LONG_DEADLINE / 2).await;
        let ScriptCalls { evalsha, eval } = fixture.script_calls().await;
        let remaining = fixture.call().await.remaining.expect("an answer");
        fixture.proxy.set(fault);
        let lost = fixture.call().await;
        assert!(lost.remaining.is_err() && lost.took < MAX_LATENCY, "{lost:?}");
        fixture.proxy.set(Fault::Pass);
        fixture.proxy.reset().await;
        let sent = ScriptCalls { evalsha: evalsha + 2, eval };
        assert_eq!(fixture.script_calls().await, sent, "{fault:?}: it was sent once");
        // A call that finds the connection closed has sent nothing.
        let next = until("an answer", RECOVERS_WITHIN, async || fixture.call().await.remaining).await;
        assert_eq!(remaining - next, 2, "{fault:?}: one for the lost reply, and one for this call");
        fixture.recovers().await;
    }
}

/// The other runtime sees that the server is up.
#[tokio::test]
async fn dead_connection_of_one_of_two_runtimes() {
    let fixture = Fixture::start().await;
    fixture.proxy.set(Fault::BlackHole);
    fixture.proxy.set(Fault::Pass);
    let stop = Arc::new(AtomicBool::new(false));
    let other = {
        let (client, stop) = (Arc::clone(&fixture.client), Arc::clone(&stop));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut answered = 0;
                while !stop.load(Ordering::Relaxed) {
                    answered += u64::from(client.call().await.remaining.is_ok());
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                answered
            })
        })
    };
    let found = until("a new connection", RECOVERS_WITHIN, async || fixture.call().await.remaining).await;
    stop.store(true, Ordering::Relaxed);
    let answered = other.join().expect("no decision panics");
    assert!(found > 0 && answered > 10, "{answered} answers on the other runtime");
}

#[tokio::test]
async fn flushed_script_costs_one_more_round_trip() {
    let fixture = Fixture::start_with_deadline(LONG_DEADLINE).await;
    for _ in 0..3 {
        let ScriptCalls { evalsha, eval } = fixture.script_calls().await;
        let remaining = fixture.call().await.remaining.expect("an answer");
        fixture.server.command::<()>(&["SCRIPT", "FLUSH"]).await;
        for spent in 1..=3 {
            assert_eq!(fixture.call().await.remaining.expect("an answer"), remaining - spent);
        }
        let sent = ScriptCalls { evalsha: evalsha + 4, eval: eval + 1 };
        assert_eq!(fixture.script_calls().await, sent);
    }
    let flushes = async {
        for _ in 0..50 {
            fixture.server.command::<()>(&["SCRIPT", "FLUSH"]).await;
        }
    };
    let (calls, ()) = tokio::join!(fixture.crowd(16, MOMENT), flushes);
    let failed = calls.iter().find(|call| call.remaining.is_err());
    assert!(failed.is_none(), "{failed:?}");
    fixture.recovers().await;
}

#[tokio::test]
async fn unresolvable_host() {
    let client = CountingClient::new("redis://ann:correct-horse@no-such-host.invalid", RedisStore::DEADLINE);
    for _ in 0..50 {
        let call = client.call().await;
        assert!(call.remaining.is_err() && call.took < MAX_LATENCY, "{call:?}");
    }
    let timed_out = client.counts().timed_out;
    assert!(timed_out <= 20, "{timed_out} of 50 timed out");
}
