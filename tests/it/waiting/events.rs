//! Log events of waiting calls. `tests/paused` checks their times exactly.

use std::time::{Duration, Instant};

use ratelimits::{FixedWindow, Limiter, Policy, Rate, TokenBucket};
use tracing::instrument::WithSubscriber;

use super::TIMEOUT;
use crate::support::log_capture::LogCapture;
use crate::support::registries::on;
use crate::support::server::Server;

const STARTED: &str = "call is waiting";
const ENDED: &str = "call has waited";
const MINUTE: Duration = Duration::from_secs(60);

fn policies(period: Duration) -> [Policy; 2] {
    [TokenBucket::new(Rate::new(1, period)).burst(1).into(), FixedWindow::new(1, period).into()]
}

fn messages(log: &LogCapture) -> Vec<String> {
    let of_mails = |(policy, message): (String, String)| {
        assert_eq!(policy, "mails");
        message
    };
    log.events().into_iter().map(of_mails).collect()
}

/// Spawns a call that logs here.
fn spawn(limiter: &Limiter, log: &LogCapture) -> tokio::task::JoinHandle<()> {
    let limiter = limiter.clone();
    let call = async move { drop(limiter.acquire(()).await) };
    tokio::spawn(call.with_subscriber(log.clone()))
}

/// Waits until this many events have been logged.
async fn wait_for_events(log: &LogCapture, events: usize) {
    let begin = Instant::now();
    while log.events().len() < events {
        assert!(begin.elapsed() < TIMEOUT, "{:?} instead of {events}", log.events());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn waits_are_logged_at_start_and_end() {
    let server = Server::shared();
    for policy in policies(Duration::from_millis(50)) {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        let log = LogCapture::default();
        // Until a call has to wait. Those that need not wait log nothing.
        let waited = async {
            let begin = Instant::now();
            loop {
                assert!(begin.elapsed() < TIMEOUT, "no call waits for {policy:?}");
                let waited = limiter.acquire(()).await.unwrap().waited;
                if waited > Duration::ZERO {
                    break waited;
                }
                assert_eq!(log.events(), []);
            }
        }
        .with_subscriber(log.clone())
        .await;
        assert_eq!(messages(&log), [STARTED, ENDED], "{policy:?}");
        let [(wait, _), ended] = &log.times()[..] else { panic!("{:?} of {policy:?}", log.times()) };
        assert_eq!((wait.as_str(), ended), ("wait", &("waited".to_owned(), format!("{waited:?}"))));
    }
}

#[tokio::test]
async fn dropped_and_refused_calls_log_no_end() {
    let server = Server::shared();
    for policy in policies(MINUTE) {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        let log = LogCapture::default();
        limiter.acquire(()).await.unwrap();
        let refused = limiter.acquire_timeout((), Duration::from_secs(1)).with_subscriber(log.clone());
        refused.await.unwrap_err();
        assert_eq!(messages(&log), ["call was limited"], "{policy:?}");
        let log = LogCapture::default();
        let waits = spawn(&limiter, &log);
        wait_for_events(&log, 1).await;
        waits.abort();
        assert!(waits.await.unwrap_err().is_cancelled());
        assert_eq!(messages(&log), [STARTED], "{policy:?}");
    }
}

#[tokio::test]
async fn window_waiters_behind_others_log_no_duration() {
    let server = Server::shared();
    let [bucket, window] = policies(MINUTE);
    for (policy, known) in [(bucket, 2), (window, 1)] {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        limiter.acquire(()).await.unwrap();
        let log = LogCapture::default();
        let first = spawn(&limiter, &log);
        wait_for_events(&log, 1).await;
        let second = spawn(&limiter, &log);
        wait_for_events(&log, 2).await;
        assert_eq!(messages(&log), [STARTED, STARTED], "{policy:?}");
        assert_eq!(log.times().len(), known, "{:?} of {policy:?}", log.times());
        [first, second].iter().for_each(|call| call.abort());
    }
}
