//! What a scrape says about calls that hold permits.

use std::panic::AssertUnwindSafe;
use std::thread;

use futures_util::FutureExt;
use metrics_exporter_prometheus::PrometheusRecorder;
use ratelimits::{Decision, concurrency_limit};
use tokio::sync::Semaphore;
use tokio::time::sleep;

use super::*;

const MOMENT: Duration = Duration::from_millis(20);

/// The permits that are held of a policy, and how many holds have ended. `None` without a series.
fn holds(recorder: &PrometheusRecorder, policy: &str) -> (Option<f64>, Option<f64>) {
    let scrape = scrape(&recorder.handle());
    let value = |name| scrape.get(&format!(r#"ratelimits_{name}{{policy="metered.{policy}"}}"#)).copied();
    (value("holds"), value("hold_seconds_count"))
}

/// The seconds of all holds that have ended.
fn seconds(recorder: &PrometheusRecorder, policy: &str) -> f64 {
    scrape(&recorder.handle())[&format!(r#"ratelimits_hold_seconds_sum{{policy="metered.{policy}"}}"#)]
}

/// Runs until the gate is closed.
#[concurrency_limit(4, key = user, cost = cost, name = "metered.job")]
async fn job(user: &str, cost: u64, gate: &Semaphore) -> Result<(), Error> {
    _ = gate.acquire().await;
    Ok(())
}

#[concurrency_limit(4, cost = 2, name = "metered.panics")]
async fn panics() -> Result<(), Error> {
    panic!("the case")
}

#[concurrency_limit(2, name = "metered.bound", bind = decision)]
async fn bound() -> Result<Decision, Error> {
    Ok(decision)
}

#[concurrency_limit(1, name = "metered.trial_run", shadow, bind = decision)]
async fn in_shadow() -> Result<Decision, Error> {
    Ok(decision)
}

#[concurrency_limit(2, name = "metered.first")]
#[count_limit(1, "1d", name = "metered.once")]
#[concurrency_limit(3, name = "metered.third", cost = 2)]
async fn stack(gate: &Semaphore) -> Result<(), Error> {
    _ = gate.acquire().await;
    Ok(())
}

/// Runs a test on a registry in process, and on one on Redis, both with a recorder.
async fn on_each(test: impl AsyncFn(&Registry, &PrometheusRecorder)) {
    let server = Server::shared();
    for url in ["memory://", &server.url()] {
        let recorder = recorder();
        let _recorder = metrics::set_default_local_recorder(&recorder);
        test(&builder().connect_lazy(url).unwrap(), &recorder).await;
    }
}

/// Waits until so many permits are held.
async fn until_held(recorder: &PrometheusRecorder, policy: &str, expected: f64) {
    until("the calls run", WITHIN, async || match holds(recorder, policy).0 {
        Some(held) if held == expected => Ok(()),
        held => Err(format!("{held:?}")),
    })
    .await;
}

#[tokio::test]
async fn gauge_is_what_running_functions_hold() {
    on_each(async |registry, recorder| {
        let gate = Semaphore::new(0);
        let call = |user, cost| registry.scope(job(user, cost, &gate));
        let running = async {
            until_held(recorder, "job", 6.0).await;
            // A call that is refused holds nothing.
            assert!(call("ann", 1).await.is_err());
            assert_eq!(holds(recorder, "job"), (Some(6.0), None));
            sleep(MOMENT).await;
            gate.close();
        };
        let (one, three, two, ()) = tokio::join!(call("ann", 1), call("ann", 3), call("bob", 2), running);
        assert!([one, three, two].iter().all(Result::is_ok));
        assert_eq!(holds(recorder, "job"), (Some(0.0), Some(3.0)));
        assert!(seconds(recorder, "job") > 2.0 * MOMENT.as_secs_f64());
        // Nothing but calls is counted as one.
        let scrape = scrape(&recorder.handle());
        let decided = scrape.iter().filter(|(series, _)| series.starts_with("ratelimits_decisions_total"));
        assert_eq!(decided.map(|(_, count)| count).sum::<f64>(), 4.0);
    })
    .await;
}

#[tokio::test]
async fn calls_that_panic_or_are_dropped_hold_nothing() {
    on_each(async |registry, recorder| {
        assert!(AssertUnwindSafe(registry.scope(panics())).catch_unwind().await.is_err());
        assert_eq!(holds(recorder, "panics"), (Some(0.0), Some(1.0)));
        let gate = Semaphore::new(0);
        tokio::select! {
            _ = registry.scope(job("ann", 2, &gate)) => panic!("it ends"),
            () = until_held(recorder, "job", 2.0) => {}
        }
        assert_eq!(holds(recorder, "job"), (Some(0.0), Some(1.0)));
    })
    .await;
}

#[tokio::test]
async fn gauge_follows_decisions() {
    on_each(async |registry, recorder| {
        let first = registry.scope(bound()).await.unwrap();
        let second = registry.scope(bound()).await.unwrap();
        assert!(registry.scope(bound()).await.is_err());
        assert_eq!(holds(recorder, "bound"), (Some(2.0), None));
        drop(first);
        assert_eq!(holds(recorder, "bound"), (Some(1.0), Some(1.0)));
        second.refund().await.unwrap();
        assert_eq!(holds(recorder, "bound"), (Some(0.0), Some(2.0)));

        let (fits, exceeds) = (registry.scope(in_shadow()).await, registry.scope(in_shadow()).await);
        drop(exceeds);
        assert_eq!(holds(recorder, "trial_run"), (Some(1.0), None));
        drop(fits);
        assert_eq!(holds(recorder, "trial_run"), (Some(0.0), Some(1.0)));

        let limiter = registry.limiter("metered.limiter", ConcurrencyLimit::new(9)).unwrap();
        let window = registry.limiter("metered.window", FixedWindow::new(9, DAY)).unwrap();
        let alone = limiter.acquire_n("a", 3).await.unwrap();
        let beside =
            registry.try_acquire_all([window.charge("a"), limiter.charge("a"), limiter.charge("a")]).await;
        assert_eq!(holds(recorder, "limiter"), (Some(5.0), None));
        drop(alone);
        beside.unwrap().refund().await.unwrap();
        assert_eq!(holds(recorder, "limiter"), (Some(0.0), Some(3.0)));
        assert_eq!(holds(recorder, "window"), (None, None));
    })
    .await;
}

#[tokio::test]
async fn each_concurrency_limit_of_a_stack_has_its_holds() {
    on_each(async |registry, recorder| {
        let gate = Semaphore::new(0);
        let running = async {
            until_held(recorder, "first", 1.0).await;
            // The window refuses.
            assert!(registry.scope(stack(&gate)).await.is_err());
            assert_eq!([holds(recorder, "first").0, holds(recorder, "third").0], [Some(1.0), Some(2.0)]);
            gate.close();
        };
        let (result, ()) = tokio::join!(registry.scope(stack(&gate)), running);
        result.unwrap();
        for policy in ["first", "third"] {
            assert_eq!(holds(recorder, policy), (Some(0.0), Some(1.0)));
        }
    })
    .await;
}

#[tokio::test]
async fn holds_are_counted_during_an_outage() {
    let recorder = recorder();
    let _recorder = metrics::set_default_local_recorder(&recorder);
    let server = Server::start();
    let registry = builder().connect_lazy(&server.url()).unwrap();
    let limiter = |name, mode| registry.limiter(name, ConcurrencyLimit::new(9)).unwrap().on_store_error(mode);
    let local = limiter("metered.held_locally", OnStoreError::Local);
    let allow = limiter("metered.let_through", OnStoreError::Allow);
    let before = local.try_acquire("a").await.unwrap();
    server.kill();
    let during = local.try_acquire_n("a", 2).await.unwrap();
    assert_eq!((before.source, during.source), (DecidedBy::Redis, DecidedBy::Local));
    let allowed = allow.try_acquire("a").await.unwrap();
    assert_eq!(holds(&recorder, "held_locally"), (Some(3.0), None));
    drop((before, allowed));
    assert_eq!(holds(&recorder, "held_locally"), (Some(2.0), Some(1.0)));
    drop(during);
    assert_eq!(holds(&recorder, "held_locally"), (Some(0.0), Some(2.0)));
    assert_eq!(holds(&recorder, "let_through"), (None, None));
}

#[test]
fn gauge_is_zero_once_all_threads_are_done() {
    let recorder = recorder();
    let registry = builder().in_memory();
    let limiter = registry.limiter("metered.threads", ConcurrencyLimit::new(1000)).unwrap();
    const THREADS: u64 = 4;
    const CALLS: u64 = 2000;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (recorder, limiter) = (&recorder, &limiter);
            scope.spawn(move || {
                let _recorder = metrics::set_default_local_recorder(recorder);
                let mut held = Vec::new();
                for call in 0..CALLS {
                    held.push(limiter.blocking_try_acquire_n("a", 1 + call % 3).unwrap());
                    held.truncate(((call + thread) % 4) as usize);
                }
            });
        }
    });
    assert_eq!(holds(&recorder, "threads"), (Some(0.0), Some((THREADS * CALLS) as f64)));
}

/// As after an exporter has dropped a series that was idle.
#[tokio::test]
async fn series_that_is_new_has_what_was_held_before() {
    let registry = builder().in_memory();
    let limiter = registry.limiter("metered.new", ConcurrencyLimit::new(9)).unwrap();
    let [first, second, third] = [recorder(), recorder(), recorder()];
    let held = {
        let _recorder = metrics::set_default_local_recorder(&first);
        limiter.try_acquire_n("a", 2).await.unwrap()
    };
    let more = {
        let _recorder = metrics::set_default_local_recorder(&second);
        limiter.try_acquire("b").await.unwrap()
    };
    assert_eq!([&first, &second].map(|recorder| holds(recorder, "new").0), [Some(2.0), Some(3.0)]);
    let _recorder = metrics::set_default_local_recorder(&third);
    drop(held);
    assert_eq!(holds(&third, "new"), (Some(1.0), Some(1.0)));
    drop(more);
    assert_eq!(holds(&third, "new"), (Some(0.0), Some(2.0)));
}
