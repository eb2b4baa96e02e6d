//! How much longer than their deadline decisions take where nothing answers, beside how much longer a bare sleep of the same
//! length takes at the same time. `RATELIMITS_LATENCY_CALLS` makes it a measurement: so many decisions a fault.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ratelimit_runtime::store::{Charge, Key, RedisStore};
use ratelimits::{FixedWindow, Policy};

use super::scene::LONGEST;
use crate::support::numbers::number;
use crate::support::proxy::{Fault, Proxy};
use crate::support::server::Server;
use crate::support::until::until;

const DEADLINE: Duration = RedisStore::DEADLINE;
/// So many decide at once, before the breaker opens.
const AT_ONCE: usize = 100;
const PAUSE: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug)]
enum Silence {
    Stopped,
    Paused,
    OnTheLine(Fault),
    /// Nobody has connected before it is stopped.
    StoppedFromTheStart,
}

#[derive(Default)]
struct Overruns {
    decisions: Vec<Duration>,
    sleeps: Vec<Duration>,
    /// Whole durations of those that came when the breaker was open.
    refused: Vec<Duration>,
}

fn charge() -> Charge {
    let spec = Policy::from(FixedWindow::new(1_000_000, DEADLINE)).spec().expect("the policy is valid");
    Charge { key: Key::raw("{delay}"), spec, cost: 1, wait: 0, shadow: false }
}

async fn timed<T>(future: impl Future<Output = T>) -> (T, Duration) {
    let begun = Instant::now();
    (future.await, begun.elapsed())
}

/// A store that has decided before, unless it is not to have.
async fn store(proxy: &Proxy, silence: Silence) -> Arc<RedisStore> {
    let store = Arc::new(RedisStore::lazy(&proxy.url()).expect("the URL is right"));
    if !matches!(silence, Silence::StoppedFromTheStart) {
        while store.decide(&[charge()]).await.is_err() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    store
}

async fn begin(silence: Silence, server: &Server, proxy: &Proxy) {
    match silence {
        Silence::Stopped | Silence::StoppedFromTheStart => server.pause(),
        Silence::Paused => {
            let mut pause = redis::cmd("CLIENT");
            pause.arg("PAUSE").arg(PAUSE.as_millis() as u64).arg("ALL");
            let _: () = pause.query_async(&mut server.connect().await).await.expect("an answer");
        }
        Silence::OnTheLine(fault) => proxy.set(fault),
    }
}

async fn end(silence: Silence, server: &Server, proxy: &Proxy) {
    match silence {
        Silence::Stopped | Silence::StoppedFromTheStart => server.resume(),
        // Who connects meanwhile may wait longer than he is ready to.
        Silence::Paused => {
            until("the pause is over", 5 * PAUSE, async || {
                server.try_connect().await.map(drop).map_err(|error| error.to_string())
            })
            .await;
        }
        Silence::OnTheLine(_) => proxy.set(Fault::Pass),
    }
    proxy.reset().await;
}

async fn measure(silence: Silence, calls: usize) -> Overruns {
    let server = Server::start();
    let proxy = Proxy::to(server.address()).await;
    let mut overruns = Overruns::default();
    while overruns.decisions.len() < calls {
        let store = store(&proxy, silence).await;
        begin(silence, &server, &proxy).await;
        let first = Instant::now();
        let pairs: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let store = Arc::clone(&store);
                let decision = async move { (first.elapsed(), timed(store.decide(&[charge()])).await) };
                let sleep = async { timed(async { tokio::time::sleep(DEADLINE).await }).await };
                (tokio::spawn(decision), tokio::spawn(sleep))
            })
            .collect();
        for (decision, sleep) in pairs {
            let (begun, (outcome, took)) = decision.await.expect("no decision panics");
            assert!(outcome.is_err(), "{silence:?}: an answer");
            let ((), slept) = sleep.await.expect("no sleep panics");
            assert!(took < LONGEST + slept, "{silence:?}: {took:?} beside {slept:?}");
            // Those before it were late by then: the breaker may be open.
            if begun >= DEADLINE {
                continue;
            }
            assert!(took >= DEADLINE, "{silence:?}: {took:?}");
            overruns.decisions.push(took - DEADLINE);
            overruns.sleeps.push(slept - DEADLINE);
        }
        for _ in 0..10 {
            overruns.refused.push(timed(store.decide(&[charge()])).await.1);
        }
        end(silence, &server, &proxy).await;
    }
    overruns
}

fn told(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part).round() as usize].as_secs_f64() * 1000.0;
    format!("{:.3} / {:.3} / {:.3}", at(0.5), at(0.99), at(0.9999))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn decisions_end_at_their_deadline_where_nothing_answers() {
    let calls = number("RATELIMITS_LATENCY_CALLS").unwrap_or(AT_ONCE as u64) as usize;
    println!("beyond {DEADLINE:?}, in ms: p50 / p99 / p99.99");
    for silence in [
        Silence::Stopped,
        Silence::StoppedFromTheStart,
        Silence::Paused,
        Silence::OnTheLine(Fault::BlackHole),
        Silence::OnTheLine(Fault::Stall),
        Silence::OnTheLine(Fault::SwallowReplies),
        Silence::OnTheLine(Fault::Latency(10 * DEADLINE)),
    ] {
        let Overruns { decisions, sleeps, refused } = measure(silence, calls).await;
        let [decisions, sleeps, refused] = [decisions, sleeps, refused].map(told);
        println!("{silence:?}: decisions {decisions}, sleeps {sleeps}; when it is open, in all: {refused}");
    }
}
