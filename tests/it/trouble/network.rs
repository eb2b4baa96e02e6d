//! Lines that are slow, break, or are refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ratelimit_runtime::store::RedisStore;

use super::scene::{Caller, LONGEST, PATIENT, Scene};
use crate::support::proxy::Fault;
use crate::support::until::until;

const MOMENT: Duration = Duration::from_millis(300);

/// What is left, how many scripts the server has run and how many decisions were made, all is well.
struct Accounts([u64; 3]);

impl Accounts {
    async fn begin(scene: &Scene) -> Accounts {
        Accounts::now(scene, scene.recovers().await).await
    }

    async fn now(scene: &Scene, left: u64) -> Accounts {
        let [executed, _] = scene.executed().await;
        Accounts([left, executed, scene.caller.counts().iter().sum()])
    }

    /// Of what was decided since nothing was sent twice, and nothing was charged that was not sent.
    async fn hold(&self, scene: &Scene) {
        let [left, executed, decided] = self.0;
        let after = Accounts::now(scene, scene.recovers().await).await.0;
        let (charged, executed, decided) = (left - after[0], after[1] - executed, after[2] - decided);
        println!("{charged} charged, {executed} executed, {decided} decided");
        assert!(charged <= executed && executed <= decided, "{charged} of {executed} of {decided}");
    }
}

/// Every decision waits for its answer.
async fn answered(scene: &Scene, callers: usize, least: Duration) {
    let calls = scene.crowd(callers, MOMENT).await;
    let wrong = calls.iter().find(|call| call.left.is_err() || call.took < least);
    assert!(wrong.is_none(), "{wrong:?}");
}

#[tokio::test]
async fn a_latency_below_the_deadline_is_waited_for() {
    let scene = Scene::set_within(PATIENT).await;
    scene.proxy.set(Fault::Latency(Duration::from_millis(100)));
    answered(&scene, 8, Duration::from_millis(200)).await;
    scene.proxy.set(Fault::Pass);
    scene.recovers().await;
}

#[tokio::test]
async fn bytes_that_come_one_by_one_make_whole_replies() {
    let scene = Scene::set_within(PATIENT).await;
    scene.proxy.set(Fault::Sliced);
    answered(&scene, 1, Duration::ZERO).await;
    scene.proxy.set(Fault::Pass);
    scene.recovers().await;
}

#[tokio::test]
async fn connections_that_are_reset_while_many_decide() {
    let scene = Scene::set().await;
    let accounts = Accounts::begin(&scene).await;
    let accepted = scene.proxy.accepted();
    let resets = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            scene.proxy.reset().await;
        }
    };
    let (calls, ()) = tokio::join!(scene.crowd(64, 2 * MOMENT), resets);
    accounts.hold(&scene).await;
    assert!(calls.iter().any(|call| call.left.is_ok()), "nobody was answered in between");
    let connections = scene.proxy.accepted() - accepted;
    assert!(connections <= 15, "{connections} connections after 5 resets");
    scene.has_one_connection().await;
}

#[tokio::test]
async fn clients_that_are_killed_while_many_decide() {
    let scene = Scene::set().await;
    let accounts = Accounts::begin(&scene).await;
    let kills = async {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            scene.kill_clients().await;
        }
    };
    let (calls, ()) = tokio::join!(scene.crowd(64, 2 * MOMENT), kills);
    accounts.hold(&scene).await;
    assert!(calls.iter().any(|call| call.left.is_ok()), "nobody was answered in between");
    scene.has_one_connection().await;
}

#[tokio::test]
async fn connections_that_are_half_closed() {
    let scene = Scene::set().await;
    let accounts = Accounts::begin(&scene).await;
    for _ in 0..3 {
        scene.proxy.half_close();
        scene.crowd(8, Duration::from_millis(50)).await;
        scene.recovers().await;
    }
    accounts.hold(&scene).await;
    scene.has_one_connection().await;
}

#[tokio::test]
async fn connections_that_are_refused() {
    let scene = Scene::set().await;
    let [answered, ..] = scene.caller.counts();
    scene.proxy.refuse().await;
    scene.proxy.reset().await;
    let calls = scene.crowd(8, 2 * MOMENT).await;
    assert!(calls.iter().all(|call| call.left.is_err()), "nobody listens");
    assert_eq!(scene.caller.counts()[0], answered);
    let waited = calls.iter().filter(|call| call.has_waited).count();
    assert!(waited * 10 < calls.len(), "{waited} of {} waited for what says no at once", calls.len());
    scene.proxy.listen().await;
    scene.recovers().await;
}

#[tokio::test]
async fn a_decision_whose_reply_is_lost_has_charged_once_and_is_an_error() {
    for fault in [Fault::SwallowNextThenReset, Fault::SwallowReplies] {
        let scene = Scene::set_within(PATIENT / 2).await;
        let [by_hash, by_text] = scene.executed().await;
        let left = scene.call().await.left.expect("an answer");
        scene.proxy.set(fault);
        let lost = scene.call().await;
        assert!(lost.left.is_err() && lost.took < LONGEST, "{lost:?}");
        scene.proxy.set(Fault::Pass);
        scene.proxy.reset().await;
        assert_eq!(scene.executed().await, [by_hash + 2, by_text], "{fault:?}: it was sent once");
        let next = until("an answer", Duration::from_secs(5), async || scene.call().await.left).await;
        // The one that finds the connection gone has sent nothing.
        assert_eq!(left - next, 2, "{fault:?}: one for the reply that was lost, and one for this");
        scene.recovers().await;
    }
}

/// The server is well, as the other runtime sees all the time.
#[tokio::test]
async fn a_dead_line_of_one_runtime_beside_a_good_one_of_another() {
    let scene = Scene::set().await;
    scene.proxy.set(Fault::BlackHole);
    scene.proxy.set(Fault::Pass);
    let over = Arc::new(AtomicBool::new(false));
    let other = {
        let (caller, over) = (Arc::clone(&scene.caller), Arc::clone(&over));
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(async {
                let mut answered = 0;
                while !over.load(Ordering::Relaxed) {
                    answered += u64::from(caller.call().await.left.is_ok());
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                answered
            })
        })
    };
    let found = until("a new line", Duration::from_secs(5), async || scene.call().await.left).await;
    over.store(true, Ordering::Relaxed);
    let answered = other.join().expect("no decision panics");
    assert!(found > 0 && answered > 10, "{answered} answers to the other one");
}

#[tokio::test]
async fn scripts_that_are_flushed_cost_one_more_round_trip() {
    let scene = Scene::set_within(PATIENT).await;
    for _ in 0..3 {
        let [by_hash, by_text] = scene.executed().await;
        let left = scene.call().await.left.expect("an answer");
        scene.operate::<()>(&["SCRIPT", "FLUSH"]).await;
        for spent in 1..=3 {
            assert_eq!(scene.call().await.left.expect("an answer"), left - spent);
        }
        assert_eq!(scene.executed().await, [by_hash + 4, by_text + 1]);
    }
    let flushes = async {
        for _ in 0..50 {
            scene.operate::<()>(&["SCRIPT", "FLUSH"]).await;
        }
    };
    let (calls, ()) = tokio::join!(scene.crowd(16, MOMENT), flushes);
    let wrong = calls.iter().find(|call| call.left.is_err());
    assert!(wrong.is_none(), "{wrong:?}");
    scene.recovers().await;
}

#[tokio::test]
async fn a_name_that_means_no_server() {
    let caller = Caller::of("redis://ann:correct-horse@no-such-host.invalid", RedisStore::DEADLINE);
    for _ in 0..50 {
        let call = caller.call().await;
        assert!(call.left.is_err() && call.took < LONGEST, "{call:?}");
    }
    let [_, waited, _] = caller.counts();
    assert!(waited <= 20, "{waited} of 50 waited");
}
