//! However Redis is run, everything that is asked of it works, and what is set up wrongly is told by its cause.

mod cluster;
mod migration;
mod sentinels;
mod servers;
#[cfg(feature = "tls")]
mod tls;

use std::error::Error as _;
use std::time::Duration;

use ratelimits::{
    Decision, Error, FixedWindow, LeakyBucket, Policy, Rate, Registry, RegistryBuilder, SlidingWindow,
    Source, TokenBucket,
};

use crate::support::registries::{PATIENT, namespace};

const MINUTE: Duration = Duration::from_secs(60);

/// One policy of each algorithm, each for three permits.
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

/// A registry that shares nothing with others, and waits for Redis on a busy machine too.
fn builder() -> RegistryBuilder {
    Registry::builder().namespace(namespace()).deadline(PATIENT)
}

/// Whether everything works at this URL, connected at once and lazily.
async fn works_at(url: &str) {
    works_as(url, |builder| builder).await;
}

async fn works_as(url: &str, set: impl Fn(RegistryBuilder) -> RegistryBuilder) {
    let connected = set(builder()).connect(url).await;
    works(&connected.unwrap_or_else(|error| panic!("{url}: {}", chain(&error)))).await;
    works(&set(builder()).connect_lazy(url).expect("the URL is right")).await;
}

async fn works(registry: &Registry) {
    for (i, policy) in policies().into_iter().enumerate() {
        let limiter = registry.limiter(&format!("works {i}"), policy).unwrap();
        assert_eq!(asked(limiter.try_acquire("a", 2).await).remaining, 1, "{policy:?}");
        let taken = asked(limiter.try_acquire("a", 1).await);
        assert_eq!(taken.remaining, 0, "{policy:?}");
        let error = limiter.try_acquire("a", 1).await.unwrap_err();
        assert!(error.is_limited() && error.retry_after().is_some(), "{policy:?}: {}", chain(&error));
        taken.refund().await.unwrap();
        assert_eq!(asked(limiter.peek("a").await).remaining, 1, "{policy:?}");
        limiter.reset("a").await.unwrap();
        assert_eq!(asked(limiter.peek("a").await).remaining, 3, "{policy:?}");
    }
    lists_work(registry).await;
}

/// A list of several policies is decided as one.
async fn lists_work(registry: &Registry) {
    let [bucket, interval, funnel, window, log, counter] = policies();
    let [bucket, interval, funnel, window, log, counter] =
        [("a", bucket), ("b", interval), ("c", funnel), ("d", window), ("e", log), ("f", counter)]
            .map(|(name, policy)| registry.limiter(&format!("list {name}"), policy).unwrap());
    let others = [&interval, &funnel, &window, &log, &counter];
    let all = [&bucket].into_iter().chain(others);
    let charges = || all.clone().map(|limiter| limiter.charge("a", 1));
    let decision = asked(registry.try_acquire_all(charges()).await);
    assert_eq!(decision.policies().len(), 6);
    asked(window.try_acquire("a", 2).await);
    assert!(registry.try_acquire_all(charges()).await.unwrap_err().is_limited());
    for limiter in [&bucket, &interval, &funnel, &log, &counter] {
        assert_eq!(asked(limiter.peek("a").await).remaining, 2, "{} is charged", limiter.name());
    }
    decision.refund().await.unwrap();
    for limiter in [&bucket, &interval, &funnel, &log, &counter] {
        assert_eq!(asked(limiter.peek("a").await).remaining, 3, "{} is still charged", limiter.name());
    }
}

/// What Redis has decided, and nobody else.
fn asked(decided: Result<Decision, Error>) -> Decision {
    let decision = decided.unwrap_or_else(|error| panic!("{}", chain(&error)));
    assert_eq!(decision.source, Source::Redis);
    decision
}

/// Why nobody connects to this URL.
async fn refused_at(url: &str) -> String {
    refused(builder(), url).await
}

async fn refused(builder: RegistryBuilder, url: &str) -> String {
    let error = builder.connect(url).await.expect_err("it is set up wrongly");
    assert!(matches!(error, Error::Store(_)), "{error}");
    let told = chain(&error);
    assert!(!format!("{told} {error:?}").contains("secret"), "{error:?}");
    told
}

/// An error, and all its causes.
fn chain(error: &Error) -> String {
    let mut told = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        told.push_str(": ");
        told.push_str(&cause.to_string());
        source = cause.source();
    }
    told
}
