//! Log events of calls that wait.

use std::time::Duration;

use ratelimits::{Error, FixedWindow, Policy, Registry, TokenBucket, count_limit, funnel_limit, rate_limit};
use tokio::time::timeout;
use tracing::instrument::WithSubscriber;

use crate::log_capture::LogCapture;

const SECOND: Duration = Duration::from_secs(1);
const BEGINS: &str = "call is waiting";
const ENDS: &str = "call has waited";

fn policies() -> [Policy; 2] {
    [TokenBucket::per_second(1).burst(1).into(), FixedWindow::new(1, SECOND).into()]
}

fn events(policy: &str, messages: &[&str]) -> Vec<(String, String)> {
    messages.iter().map(|message| (policy.to_owned(), (*message).to_owned())).collect()
}

fn times(times: &[(&str, Duration)]) -> Vec<(String, String)> {
    times.iter().map(|(name, time)| ((*name).to_owned(), format!("{time:?}"))).collect()
}

#[tokio::test(start_paused = true)]
async fn waits_are_logged() {
    for policy in policies() {
        let limiter = Registry::in_memory().limiter("mails", policy).unwrap();
        let log = LogCapture::default();
        async {
            assert_eq!(limiter.acquire(()).await.unwrap().waited, Duration::ZERO);
            assert_eq!(log.events(), []);
            assert_eq!(limiter.acquire(()).await.unwrap().waited, SECOND);
        }
        .with_subscriber(log.clone())
        .await;
        assert_eq!(log.events(), events("mails", &[BEGINS, ENDS]), "{policy:?}");
        assert_eq!(log.times(), times(&[("wait", SECOND), ("waited", SECOND)]), "{policy:?}");
    }
}

#[count_limit(1, "1d", name = "trial", shadow)]
async fn on_trial() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shadow_refusals_are_logged_once_a_second() {
    let log = LogCapture::default();
    async {
        // One call is admitted, one logged, and of the others one a second.
        for _ in 0..10 {
            on_trial().await.unwrap();
            tokio::time::advance(SECOND / 4).await;
        }
    }
    .with_subscriber(log.clone())
    .await;
    let start = events("", &["limits are decided in this process"]);
    assert_eq!(
        log.events(),
        [start, events("trial", &["shadow policy would have limited calls"; 3])].concat()
    );
    let text = log.text();
    assert_eq!((text.matches("calls=1\n").count(), text.matches("calls=4\n").count()), (1, 2), "{text}");
}

#[tokio::test(start_paused = true)]
async fn dropped_and_refused_calls_log_no_end() {
    for policy in policies() {
        let limiter = Registry::in_memory().limiter("mails", policy).unwrap();
        let log = LogCapture::default();
        async {
            limiter.acquire(()).await.unwrap();
            limiter.acquire_timeout((), SECOND / 2).await.unwrap_err();
            timeout(SECOND / 2, limiter.acquire(())).await.unwrap_err();
        }
        .with_subscriber(log.clone())
        .await;
        assert_eq!(log.events(), events("mails", &["call was limited", BEGINS]), "{policy:?}");
        assert_eq!(log.times(), times(&[("wait", SECOND)]), "{policy:?}");
    }
}

/// Captures the log of the second of two calls.
async fn second_call<F: Future<Output = Result<(), Error>>>(call: impl Fn() -> F) -> LogCapture {
    let log = LogCapture::default();
    call().await.unwrap();
    call().with_subscriber(log.clone()).await.unwrap();
    log
}

#[rate_limit("10/s", burst = 1, name = "events.fast", timeout = "forever")]
#[rate_limit("1/s", burst = 1, name = "events.slow", timeout = "forever")]
#[rate_limit("5/s", burst = 1, name = "events.medium", timeout = "forever")]
async fn buckets() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn longest_wait_is_logged() {
    let log = second_call(buckets).await;
    assert_eq!(log.events(), events("events.slow", &[BEGINS, ENDS]));
    // It asks again when the slow bucket will be ready by the slot that the fast one gives now.
    assert_eq!(log.times(), times(&[("wait", SECOND * 9 / 10), ("waited", SECOND)]));
}

#[rate_limit("1/m", burst = 1, name = "events.shadow", shadow)]
#[rate_limit("1/s", burst = 1, name = "events.required", timeout = "forever")]
#[funnel_limit(capacity = 2, leak_rate = 0.01, queue, shadow, name = "events.queue")]
async fn beside_shadows() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", name = "events.window.shadow", shadow)]
#[count_limit(1, "1s", name = "events.window.required", timeout = "forever")]
#[rate_limit("1/m", burst = 1, name = "events.window.other", shadow)]
async fn beside_shadow_windows() -> Result<(), Error> {
    Ok(())
}

/// Without the events that shadow policies log on their own.
fn waits(log: &LogCapture) -> Vec<(String, String)> {
    let events = log.events().into_iter();
    events.filter(|(_, message)| [BEGINS, ENDS].contains(&message.as_str())).collect()
}

#[tokio::test(start_paused = true)]
async fn shadow_policies_log_no_wait() {
    assert_eq!(waits(&second_call(beside_shadows).await), events("events.required", &[BEGINS, ENDS]));
    let log = second_call(beside_shadow_windows).await;
    assert_eq!(waits(&log), events("events.window.required", &[BEGINS, ENDS]));
}

#[count_limit(1000, "1d", name = "events.roomy.1", timeout = "forever")]
#[count_limit(1, "1s", name = "events.full.1", timeout = "forever")]
async fn second_is_full() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1s", name = "events.full.2", timeout = "forever")]
#[rate_limit("1000/s", burst = 1000, name = "events.roomy.2", timeout = "forever")]
async fn first_is_full() -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/s", burst = 1, name = "events.full.3", timeout = "forever")]
#[count_limit(1000, "1d", name = "events.roomy.3", timeout = "forever")]
async fn bucket_is_empty() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn refusing_policy_is_logged() {
    let log = [
        second_call(second_is_full).await,
        second_call(first_is_full).await,
        second_call(bucket_is_empty).await,
    ];
    let full = ["events.full.1", "events.full.2", "events.full.3"];
    assert_eq!(log.each_ref().map(LogCapture::events), full.map(|full| events(full, &[BEGINS, ENDS])));
}

#[count_limit(1, "1s", name = "events.short", timeout = "forever")]
#[count_limit(1, "3s", name = "events.long", timeout = "forever")]
async fn windows() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn longest_wait_for_windows_is_logged() {
    let log = second_call(windows).await;
    assert_eq!(log.events(), events("events.long", &[BEGINS, ENDS]));
    assert_eq!(log.times(), times(&[("wait", 3 * SECOND), ("waited", 3 * SECOND)]));
}

#[count_limit(1, "1d", name = "trial.charged", shadow, charge_when = |out| *out)]
async fn on_trial_for_some_outputs(out: bool) -> bool {
    out
}

#[tokio::test(start_paused = true)]
async fn shadows_that_admit_a_call_log_nothing() {
    let log = LogCapture::default();
    let calls = async { on_trial_for_some_outputs(true).await };
    assert!(calls.with_subscriber(log.clone()).await);
    assert_eq!(log.events(), events("", &["limits are decided in this process"]));
}

#[count_limit(1, "1d", name = "trial.beside", shadow)]
#[count_limit(10, "1d", name = "trial.required")]
async fn on_trial_beside_another() -> Result<(), Error> {
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn shadow_refusals_of_stacks_are_logged() {
    let log = second_call(on_trial_beside_another).await;
    assert_eq!(log.events(), events("trial.beside", &["shadow policy would have limited calls"]));
}
