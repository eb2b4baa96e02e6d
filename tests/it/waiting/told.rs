//! What a call that waits tells in the log.

use std::time::Duration;

use ratelimits::{FixedWindow, Policy, Rate, Registry, TokenBucket};
use tracing::instrument::WithSubscriber;

use crate::support::told::Told;

#[tokio::test]
async fn a_call_tells_when_it_begins_to_wait_and_when_it_has_waited() {
    let period = Duration::from_millis(20);
    let bucket: Policy = TokenBucket::new(Rate::new(1, period)).burst(1).into();
    for (policy, known) in [(bucket, 1), (FixedWindow::new(1, period).into(), 1)] {
        let limiter = Registry::in_memory().limiter("mails", policy).unwrap();
        let told = Told::default();
        let waited = async {
            limiter.acquire((), 1).await.unwrap();
            limiter.acquire((), 1).await.unwrap().waited
        }
        .with_subscriber(told.clone())
        .await;
        let begins = ("mails".to_owned(), "a call waits for its turn".to_owned());
        let ends = ("mails".to_owned(), "a call has waited for its turn".to_owned());
        assert_eq!(told.events(), [begins, ends]);
        let times = told.times();
        assert_eq!(times.len(), known + 1);
        assert_eq!(times[known], ("waited".to_owned(), format!("{waited:?}")));
        assert_eq!(times[0].0, "wait");
    }
}

#[tokio::test]
async fn one_that_is_dropped_or_refused_tells_no_end() {
    let policy = TokenBucket::new(Rate::new(1, Duration::from_secs(60))).burst(1);
    let limiter = Registry::in_memory().limiter("mails", policy).unwrap();
    let told = Told::default();
    async {
        limiter.acquire((), 1).await.unwrap();
        limiter.acquire_timeout((), 1, Duration::from_secs(1)).await.unwrap_err();
        let waits = tokio::time::timeout(Duration::from_millis(5), limiter.acquire((), 1));
        waits.await.unwrap_err();
    }
    .with_subscriber(told.clone())
    .await;
    let events: Vec<String> = told.events().into_iter().map(|(_, message)| message).collect();
    assert_eq!(events, ["a call waits for its turn"]);
}
