//! What a call that waits on Redis tells in the log. Its times are told exactly where the clock is paused: `tests/paused`.

use std::time::{Duration, Instant};

use ratelimits::{FixedWindow, Limiter, Policy, Rate, TokenBucket};
use tracing::instrument::WithSubscriber;

use super::PATIENCE;
use crate::support::registries::on;
use crate::support::server::Server;
use crate::support::told::Told;

const BEGINS: &str = "a call waits for its turn";
const ENDS: &str = "a call has waited for its turn";
const MINUTE: Duration = Duration::from_secs(60);

fn policies(period: Duration) -> [Policy; 2] {
    [TokenBucket::new(Rate::new(1, period)).burst(1).into(), FixedWindow::new(1, period).into()]
}

fn messages(told: &Told) -> Vec<String> {
    let of_mails = |(policy, message): (String, String)| {
        assert_eq!(policy, "mails");
        message
    };
    told.events().into_iter().map(of_mails).collect()
}

/// A call that tells here.
fn spawn(limiter: &Limiter, told: &Told) -> tokio::task::JoinHandle<()> {
    let limiter = limiter.clone();
    let call = async move { drop(limiter.acquire((), 1).await) };
    tokio::spawn(call.with_subscriber(told.clone()))
}

/// Returns when so many events were told.
async fn tells(told: &Told, events: usize) {
    let begin = Instant::now();
    while told.events().len() < events {
        assert!(begin.elapsed() < PATIENCE, "{:?} and not {events}", told.events());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn a_call_tells_when_it_begins_to_wait_and_when_it_has_waited() {
    let server = Server::shared();
    for policy in policies(Duration::from_millis(50)) {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        let told = Told::default();
        // Until one has to wait, however slowly they come. Those that need not wait tell nothing.
        let waited = async {
            let begin = Instant::now();
            loop {
                assert!(begin.elapsed() < PATIENCE, "nobody waits for {policy:?}");
                let waited = limiter.acquire((), 1).await.unwrap().waited;
                if waited > Duration::ZERO {
                    break waited;
                }
                assert_eq!(told.events(), []);
            }
        }
        .with_subscriber(told.clone())
        .await;
        assert_eq!(messages(&told), [BEGINS, ENDS], "{policy:?}");
        let [(wait, _), ended] = &told.times()[..] else { panic!("{:?} of {policy:?}", told.times()) };
        assert_eq!((wait.as_str(), ended), ("wait", &("waited".to_owned(), format!("{waited:?}"))));
    }
}

#[tokio::test]
async fn one_that_is_dropped_or_refused_tells_no_end() {
    let server = Server::shared();
    for policy in policies(MINUTE) {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        let told = Told::default();
        limiter.acquire((), 1).await.unwrap();
        let refused = limiter.acquire_timeout((), 1, Duration::from_secs(1)).with_subscriber(told.clone());
        refused.await.unwrap_err();
        assert_eq!(told.events(), []);
        let waits = spawn(&limiter, &told);
        tells(&told, 1).await;
        waits.abort();
        assert!(waits.await.unwrap_err().is_cancelled());
        assert_eq!(messages(&told), [BEGINS], "{policy:?}");
    }
}

#[tokio::test]
async fn who_stands_behind_another_at_a_window_does_not_know_for_how_long() {
    let server = Server::shared();
    let [bucket, window] = policies(MINUTE);
    for (policy, known) in [(bucket, 2), (window, 1)] {
        let limiter = on(&server).limiter("mails", policy).unwrap();
        limiter.acquire((), 1).await.unwrap();
        let told = Told::default();
        let first = spawn(&limiter, &told);
        tells(&told, 1).await;
        let second = spawn(&limiter, &told);
        tells(&told, 2).await;
        assert_eq!(messages(&told), [BEGINS, BEGINS], "{policy:?}");
        assert_eq!(told.times().len(), known, "{:?} of {policy:?}", told.times());
        [first, second].iter().for_each(|call| call.abort());
    }
}
