//! `bind`: the body sees the decision.

use std::time::Duration;

use ratelimits::{DecidedBy, Decision, Error, FixedWindow, count_limit, funnel_limit, rate_limit};

use crate::support::registries::on_each_registry;
use crate::support::until::until;

const DAY: Duration = Duration::from_secs(86_400);

/// Counts what it sends, and settles when it is dropped.
struct Stream {
    decision: Decision,
    sent: u64,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.decision.settle_each([1, self.sent]);
    }
}

#[count_limit(2, "1d", name = "bind.free", shadow)]
#[rate_limit(rate = "1/h", burst = 100, name = "bind.tokens", cost = 20, bind = decision)]
async fn send(chunks: &[u64]) -> Result<(Stream, &'static str), Error> {
    let is_free = decision.policies().iter().all(|policy| policy.admitted);
    let mut stream = Stream { decision, sent: 0 };
    for chunk in chunks {
        tokio::task::yield_now().await;
        stream.sent += chunk;
    }
    Ok((stream, if is_free { "large" } else { "small" }))
}

#[tokio::test]
async fn streams_settle_the_decision_of_their_call() {
    on_each_registry(async |registry, decided_by| {
        let remain = async |expected: u64| {
            until("it is settled", Duration::from_secs(20), async || {
                let remaining = registry.policy("bind.tokens").unwrap().peek(()).await.unwrap().remaining;
                if remaining == expected { Ok(()) } else { Err(format!("{remaining} remain")) }
            })
            .await;
        };
        let (stream, model) = registry.scope(send(&[3, 4])).await.unwrap();
        assert_eq!((stream.decision.source, model), (decided_by, "large"));
        remain(80).await;
        drop(stream);
        remain(93).await;
        drop(registry.scope(send(&[30])).await.unwrap());
        remain(63).await;
        // The shadow would refuse it: the body chooses what to do.
        let (stream, model) = registry.scope(send(&[])).await.unwrap();
        assert_eq!(model, "small");
        drop(stream);
        remain(63).await;
        drop(registry.scope(send(&[80])).await.unwrap());
        remain(0).await;
        assert!(registry.scope(send(&[])).await.map(drop).unwrap_err().is_limited());
    })
    .await;
}

#[count_limit(
    3, "1d", key = user, name = "bind.daily", skip_when = user == "root", bind = seen,
    fallback = |error| error.retry_after().map(|_| 0)
)]
async fn remaining(user: &str) -> Option<u64> {
    assert!(seen.policies().len() == usize::from(user != "root"));
    Some(seen.remaining)
}

#[tokio::test]
async fn bodies_see_what_remains() {
    on_each_registry(async |registry, _| {
        for expected in [2, 1, 0, 0] {
            assert_eq!(registry.scope(remaining("ann")).await, Some(expected));
        }
        assert_eq!(registry.scope(remaining("root")).await, Some(u64::MAX));
    })
    .await;
}

#[count_limit(1, "1d", name = "bind.shadow", shadow, bind = seen)]
async fn on_trial() -> bool {
    seen.policies()[0].admitted
}

#[tokio::test]
async fn bodies_see_what_a_shadow_says() {
    on_each_registry(async |registry, _| {
        assert!(registry.scope(on_trial()).await);
        assert!(!registry.scope(on_trial()).await);
    })
    .await;
}

#[funnel_limit(10, "2/s", queue, name = "bind.queue", bind = decision)]
async fn paced() -> Result<Duration, Error> {
    Ok(decision.waited)
}

#[tokio::test]
async fn bodies_see_how_long_they_waited() {
    on_each_registry(async |registry, _| {
        assert_eq!(registry.scope(paced()).await.unwrap(), Duration::ZERO);
        assert!(registry.scope(paced()).await.unwrap() > Duration::ZERO);
    })
    .await;
}

#[rate_limit(5.0, shadow, key_type = USER, name = "bind.userless", bind = seen)]
async fn userless() -> usize {
    seen.policies().len()
}

#[tokio::test]
async fn shadows_without_a_key_say_nothing() {
    on_each_registry(async |registry, _| assert_eq!(registry.scope(userless()).await, 0)).await;
}

#[tokio::test]
async fn decisions_about_nothing_have_no_policies() {
    on_each_registry(async |registry, _| {
        let limiter = registry.limiter("others", FixedWindow::new(1, DAY)).unwrap();
        limiter.try_acquire(()).await.unwrap();
        #[count_limit(1, "1d", name = "bind.skipped", skip_when = true, bind = decision)]
        async fn skipped() -> Result<Decision, Error> {
            Ok(decision)
        }
        let mut decision = registry.scope(skipped()).await.unwrap();
        assert_eq!((decision.source, decision.policies().len()), (DecidedBy::Skipped, 0));
        decision.settle(5);
        decision.refund().await.unwrap();
    })
    .await;
}
