//! Nothing answers. Some decisions wait for their deadline, and then the breaker is open: the others are errors at once, and of
//! what was sent before, nothing is sent again.

use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::RedisStore;

use super::scene::{Caller, LONGEST, PATIENT, Scene};
use crate::support::proxy::Fault;
use crate::support::server::Server;
use crate::support::until::until;

const CALLERS: usize = 64;
const SILENCE: Duration = Duration::from_millis(1500);
/// A try is made every 100 to 500 ms, and at most one at a time.
const TRIES: u64 = 15;

/// Has many decide from the one to the other, and nobody answered.
async fn silent(scene: &Scene, begin: impl AsyncFnOnce(), end: impl AsyncFnOnce()) {
    let [by_hash, by_text] = scene.executed().await;
    let [answered, waited, refused] = scene.caller.counts();
    let accepted = scene.proxy.accepted();
    begin().await;
    let calls = scene.crowd(CALLERS, SILENCE).await;
    end().await;
    assert!(calls.iter().all(|call| call.left.is_err()), "somebody was answered");
    let late = calls.iter().filter(|call| call.has_waited).count() as u64;
    // All at once at first, and some that came before the first of these was late.
    let most = 2 * CALLERS as u64 + TRIES;
    assert!((1..=most).contains(&late), "{late} of {} decisions waited", calls.len());
    assert!(calls.len() as u64 > 5 * late, "only {} decisions, of which {late} waited", calls.len());

    scene.recovers().await;
    let sent = {
        let after = scene.caller.counts();
        after[0] - answered + (after[1] - waited)
    };
    let after = scene.executed().await;
    let executed = after[0] - by_hash;
    println!("{late} waited, {} refused, {executed} executed", scene.caller.counts()[2] - refused);
    assert!(executed <= sent, "{executed} executed of {sent} sent");
    assert_eq!(after[1], by_text, "the script was known");
    let connections = scene.proxy.accepted() - accepted;
    assert!(connections <= TRIES, "{connections} connections");
    scene.has_one_connection().await;
}

#[tokio::test]
async fn a_server_that_is_stopped() {
    let scene = Scene::set().await;
    silent(&scene, async || scene.server.pause(), async || scene.server.resume()).await;
}

#[tokio::test]
async fn a_server_that_is_stopped_before_anybody_has_connected() {
    let server = Server::start();
    server.pause();
    let caller = Caller::of(&server.url(), RedisStore::DEADLINE);
    for _ in 0..20 {
        let call = caller.call().await;
        assert!(call.left.is_err() && call.took < LONGEST);
    }
    let [_, waited, refused] = caller.counts();
    assert!(waited <= 8 && refused >= 12, "{waited} waited, and {refused} did not");
    server.resume();
    until("it answers", Duration::from_secs(5), async || caller.call().await.left).await;
}

/// So many are under way on a connection at the most.
const IN_FLIGHT: usize = 4096;

#[tokio::test]
async fn of_many_that_come_at_once_a_server_that_is_stopped_has_a_bounded_number_to_do_when_it_goes_on() {
    let scene = Scene::set_within(PATIENT).await;
    let [before, _] = scene.executed().await;
    scene.server.pause();
    let calls: Vec<_> = (0..2 * IN_FLIGHT)
        .map(|_| {
            let caller = Arc::clone(&scene.caller);
            tokio::spawn(async move { caller.call().await })
        })
        .collect();
    for call in calls {
        assert!(call.await.expect("no decision panics").left.is_err());
    }
    scene.server.resume();
    scene.recovers().await;
    scene.has_one_connection().await;
    let [answered, ..] = scene.caller.counts();
    let [after, _] = scene.executed().await;
    let executed = after - before;
    println!("{executed} executed of {}", 2 * IN_FLIGHT);
    assert!(executed <= IN_FLIGHT as u64 + TRIES + answered, "{executed} executed");
}

#[tokio::test]
async fn clients_that_are_paused() {
    let scene = Scene::set().await;
    let pause = async || scene.operate::<()>(&["CLIENT", "PAUSE", "4000", "ALL"]).await;
    // Nobody is heard meanwhile, not even who would end it.
    let rest = Duration::from_millis(4000) - SILENCE;
    silent(&scene, pause, async || tokio::time::sleep(rest).await).await;
}

#[tokio::test]
async fn a_server_that_sleeps() {
    let scene = Scene::set().await;
    let mut connection = scene.server.connect().await;
    let asleep = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let slept: Result<(), _> =
            redis::cmd("DEBUG").arg(&["SLEEP", "4"]).query_async(&mut connection).await;
        slept.expect("it wakes up");
    });
    let begin = async || tokio::time::sleep(Duration::from_millis(200)).await;
    silent(&scene, begin, async || asleep.await.expect("it wakes up")).await;
}

#[tokio::test]
async fn a_line_that_is_a_black_hole() {
    let scene = Scene::set().await;
    let set = async |fault| scene.proxy.set(fault);
    silent(&scene, async || set(Fault::BlackHole).await, async || set(Fault::Pass).await).await;
}

#[tokio::test]
async fn a_line_that_stalls() {
    let scene = Scene::set().await;
    let set = async |fault| scene.proxy.set(fault);
    silent(&scene, async || set(Fault::Stall).await, async || set(Fault::Pass).await).await;
}

#[tokio::test]
async fn a_line_with_a_latency_above_the_deadline() {
    let scene = Scene::set().await;
    let set = async |fault| scene.proxy.set(fault);
    let latency = Fault::Latency(Duration::from_millis(500));
    silent(&scene, async || set(latency).await, async || set(Fault::Pass).await).await;
}

#[tokio::test]
async fn replies_that_are_swallowed() {
    let scene = Scene::set().await;
    let begin = async || scene.proxy.set(Fault::SwallowReplies);
    // On a connection that has lost a reply the next one would be taken for it.
    let end = async || {
        scene.proxy.set(Fault::Pass);
        scene.proxy.reset().await;
    };
    silent(&scene, begin, end).await;
}
