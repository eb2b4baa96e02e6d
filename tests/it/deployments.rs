//! Every way to run Redis works, and a wrong set-up is reported with its cause.

mod cluster;
mod connections;
mod migration;
mod sentinels;
mod servers;
#[cfg(feature = "tls")]
mod tls;

use std::time::Duration;

use ratelimits::{
    DecidedBy, Decision, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, RegistryBuilder,
    SlidingWindow, TokenBucket,
};
use tracing::instrument::WithSubscriber;

use crate::support::log_capture::LogCapture;
use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::store::chain;

const MINUTE: Duration = Duration::from_secs(60);
/// How servers word that a login failed.
const LOGIN_ERRORS: [&str; 2] = ["WRONGPASS", "authentication failed"];

/// One policy of each algorithm, each with three permits.
fn policies() -> [Policy; 6] {
    let rate = Rate::new(1, MINUTE);
    [
        TokenBucket::new(rate).burst(3).into(),
        TokenBucket::new(rate).interval_refill().burst(3).into(),
        LeakyBucket::new(3, rate).into(),
        FixedWindow::new(3, MINUTE).into(),
        SlidingWindow::new(3, MINUTE).into(),
        SlidingWindow::new(3, MINUTE).precision(Duration::from_secs(1)).into(),
    ]
}

/// A registry in its own namespace.
fn builder() -> RegistryBuilder {
    Registry::builder().namespace(namespace()).deadline(LONG_DEADLINE)
}

/// Asserts that every operation works at this URL, connected eagerly and lazily, and that the log has the server's version.
async fn works_at(url: &str) {
    let log = works_as(url, |builder| builder).await;
    assert!(log.contains("\nversion="), "{url}: {log}");
}

/// Returns what is logged while the registry connects.
async fn works_as(url: &str, set: impl Fn(RegistryBuilder) -> RegistryBuilder) -> String {
    let log = LogCapture::default();
    let connected = set(builder()).connect(url).with_subscriber(log.clone()).await;
    works(&connected.unwrap_or_else(|error| panic!("{url}: {}", chain(&error)))).await;
    works(&set(builder()).connect_lazy(url).expect("the URL is valid")).await;
    let kind = ["sentinel", "cluster"].into_iter().find(|kind| url.contains(&format!("+{kind}")));
    let text = log.text();
    assert!(text.contains(&format!("\ndeployment={}\n", kind.unwrap_or("single"))), "{url}: {text}");
    text
}

async fn works(registry: &Registry) {
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("works {i}"), policy).unwrap();
        assert_eq!(decided(limiter.try_acquire_n("a", 2).await).remaining, 1, "{policy:?}");
        let taken = decided(limiter.try_acquire("a").await);
        assert_eq!(taken.remaining, 0, "{policy:?}");
        let error = limiter.try_acquire("a").await.unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_some(), "{policy:?}: {}", chain(&error));
        taken.refund().await.unwrap();
        assert_eq!(decided(limiter.peek("a").await).remaining, 1, "{policy:?}");
        limiter.reset("a").await.unwrap();
        assert_eq!(decided(limiter.peek("a").await).remaining, 3, "{policy:?}");
    }
    lists_work(registry).await;
}

/// Asserts that a list of several policies is decided as one.
async fn lists_work(registry: &Registry) {
    let [bucket, interval, funnel, window, log, counter] = policies();
    let [bucket, interval, funnel, window, log, counter] =
        [("a", bucket), ("b", interval), ("c", funnel), ("d", window), ("e", log), ("f", counter)]
            .map(|(name, policy)| registry.limiter(&format!("list {name}"), policy).unwrap());
    let others = [&interval, &funnel, &window, &log, &counter];
    let all = [&bucket].into_iter().chain(others);
    let charges = || all.clone().map(|limiter| limiter.charge("a"));
    let decision = decided(registry.try_acquire_all(charges()).await);
    assert_eq!(decision.policies().len(), 6);
    decided(window.try_acquire_n("a", 2).await);
    assert!(registry.try_acquire_all(charges()).await.unwrap_err().is_limited());
    for limiter in [&bucket, &interval, &funnel, &log, &counter] {
        assert_eq!(decided(limiter.peek("a").await).remaining, 2, "{} was charged", limiter.name());
    }
    decision.refund().await.unwrap();
    for limiter in [&bucket, &interval, &funnel, &log, &counter] {
        assert_eq!(decided(limiter.peek("a").await).remaining, 3, "{} is still charged", limiter.name());
    }
}

/// A decision that Redis made.
fn decided(result: Result<Decision, Error>) -> Decision {
    let decision = result.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(decision.source, DecidedBy::Redis);
    decision
}

/// Returns why this URL does not work.
async fn connect_error(url: &str) -> String {
    connect_error_of(builder(), url).await
}

async fn connect_error_of(builder: RegistryBuilder, url: &str) -> String {
    let error = builder.connect(url).await.expect_err("the set-up is wrong");
    assert!(matches!(error, Error::Store(_)), "{error}");
    let text = chain(&error);
    assert!(!format!("{text} {error:?}").contains("secret"), "{error:?}");
    text
}
