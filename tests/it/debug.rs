//! `Debug` of everything public: short, and without secrets.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::error::{InstallError, Limited, MissingKey};
use ratelimits::observe::{CallOutcome, MostLimited, Observation, Suggestions};
use ratelimits::{
    Algorithm, ClientIp, Error, FixedWindow, LeakyBucket, OnStoreError, Policy, Rate, Registry,
    RequestContext, SlidingWindow, TokenBucket,
};

use crate::support::registries::on_each_registry;
use crate::support::server::Server;

/// What all secrets contain, also as bytes.
const SECRET: &str = "s3cr3t";

const HOUR: Duration = Duration::from_secs(3600);

/// Asserts that both forms are short and contain no secret.
fn assert_harmless(value: &dyn Debug) {
    let bytes = format!("{:?}", SECRET.as_bytes());
    for text in [format!("{value:?}"), format!("{value:#?}")] {
        let flat: String = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(", ]", "]");
        let leaks = [SECRET, bytes.trim_matches(['[', ']'])].iter().any(|secret| flat.contains(secret));
        assert!(!leaks && text.len() < 1000, "{} characters: {text}", text.len());
    }
}

fn key(i: u32) -> (String, u32) {
    (format!("{SECRET}-{i}"), i)
}

#[tokio::test]
async fn every_public_type_is_harmless() {
    let mut seen = Vec::new();
    let mut check = |name: &'static str, value: &dyn Debug| {
        assert_harmless(value);
        seen.push(name);
    };
    let url = format!("redis://{SECRET}:{SECRET}@127.0.0.1:1");
    let ip = std::net::Ipv4Addr::new(192, 0, 2, 7);

    let registry = Registry::connect_lazy(&url).unwrap();
    check("Registry", &registry);
    let builder = Registry::builder();
    #[cfg(feature = "tls")]
    let builder = builder.ca_certificates(format!("{SECRET}{}", "x".repeat(10_000)));
    check("RegistryBuilder", &builder);
    let limiter = registry.limiter("a", TokenBucket::new(Rate::new(1, HOUR)).burst(1)).unwrap();
    check("Limiter", &limiter.prefix("sms").function("app::send").on_store_error(OnStoreError::Deny));
    check("Charge", &limiter.charge(key(0)));
    check("RequestContext", &RequestContext::new().with_ip(ip).with_user(SECRET));
    assert!(!format!("{:?}", RequestContext::new().with_ip(ip)).contains("192"));

    let decision = limiter.try_acquire(key(0)).await.unwrap();
    check("Decision", &decision);
    check("PolicyDecision", &decision.policies()[0]);
    check("DecidedBy", &decision.source);
    check("StoreHealth", &registry.store_health());
    let error = limiter.try_acquire(key(0)).await.unwrap_err();
    check("Error", &error);
    let Error::Limited(limited) = error else { panic!("not limited: {error}") };
    check("Limited", &limited as &Limited);
    let denied = limiter.on_store_error(OnStoreError::Deny).try_acquire(key(0)).await.unwrap_err();
    let Error::Store(error) = denied else { panic!("not denied: {denied}") };
    check("StoreError", &error);
    check("MissingKey", &MissingKey::User);
    check("InvalidPolicy", &FixedWindow::new(0, HOUR).check().unwrap_err());
    check("InstallError", &InstallError::AlreadyInUse);
    check("UnknownPolicy", &registry.policy("?").unwrap_err());
    let info = ratelimits::policies().swap_remove(0);
    check("PolicyHandle", &registry.policy(&info.name).unwrap());
    check("PolicyInfo", &info);
    #[cfg(feature = "dashboard")]
    check("Dashboard", &ratelimits::dashboard::Dashboard::new(|_| true).keep_keys());
    check("Usage", &registry.policy("policies.window").unwrap().usage(key(0)).await.unwrap());

    let (window, bucket) = (FixedWindow::new(u64::MAX, Duration::MAX), TokenBucket::new(Rate::per_second(1)));
    check("FixedWindow", &window.aligned());
    check("SlidingWindow", &SlidingWindow::new(u64::MAX, Duration::MAX).precision(HOUR));
    check("LeakyBucket", &LeakyBucket::draining(u64::MAX, Duration::MAX).queue());
    check("TokenBucket", &bucket.burst_for(Duration::MAX).borrow());
    check("Policy", &Policy::from(window));
    check("Algorithm", &Policy::from(window).algorithm());
    check("Rate", &Rate::new(u64::MAX, Duration::MAX));
    check("OnStoreError", &OnStoreError::Local);
    check("CallOutcome", &CallOutcome::ShadowLimited);
    let client_ip = ClientIp::header("x-forwarded-for", vec!["192.0.2.7"; 10_000]).unwrap();
    check("ClientIp", &client_ip);
    check("InvalidClientIp", &ClientIp::peer().ipv6_prefix(0).unwrap_err());

    let observations = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&observations);
    let observe = move |observation: &Observation<'_>| {
        assert_eq!(observation.key(), [format!("{SECRET}-0"), "0".to_owned()]);
        assert_eq!(
            (observation.algorithm, observation.outcome),
            (Algorithm::TokenBucket, CallOutcome::Admitted)
        );
        assert_harmless(observation);
        assert_harmless(&observation.quota().unwrap());
        count.fetch_add(1, Ordering::Relaxed);
    };
    let observed = Registry::builder().observer(observe).in_memory();
    observed.limiter("a", bucket).unwrap().try_acquire(key(0)).await.unwrap();
    assert_eq!(observations.load(Ordering::Relaxed), 1);
    seen.extend(["Observation", "Quota"]);

    // As long as its problems are many, since `main` prints it. Names and files are all it knows.
    let problems = ratelimits::check_policies().unwrap_err();
    assert_eq!(format!("{problems:?}"), problems.to_string());
    seen.push("CheckError");

    let most_limited = MostLimited::new(10).keep_keys();
    let observed = Registry::builder().observer(most_limited.observer()).in_memory();
    let limiter = observed.limiter("a", FixedWindow::new(1, HOUR)).unwrap();
    assert!(limiter.try_acquire_n(key(0), 2).await.is_err());
    assert_harmless(&most_limited);
    assert_harmless(&most_limited.list()[0]);
    seen.extend(["MostLimited", "LimitedKey"]);

    let suggestions = Suggestions::new();
    let observed = Registry::builder().observer(suggestions.observer()).in_memory();
    observed.limiter("a", bucket).unwrap().try_acquire(key(0)).await.unwrap();
    assert_harmless(&suggestions);
    assert_harmless(&suggestions.list()[0]);
    seen.extend(["Suggestions", "Suggestion"]);

    // A new public type needs a line above.
    let exported = include_str!("../../src/lib.rs").split_once("pub use ratelimit_runtime::{").unwrap().1;
    let exported = exported.split_once('}').unwrap().0.split(',').map(str::trim);
    let types = exported.filter(|name| name.starts_with(char::is_uppercase) && *name != "IntoKey");
    for name in types {
        assert!(seen.contains(&name), "{name} is not checked");
    }
}

#[tokio::test]
async fn registry_with_many_keys_and_waiters_is_short() {
    on_each_registry(async |registry, _| {
        let limiter = registry.limiter("a", TokenBucket::new(Rate::new(1, HOUR)).burst(1)).unwrap();
        for i in 0..1000 {
            limiter.try_acquire(key(i)).await.unwrap();
            registry.limiter(&format!("b{i}"), FixedWindow::new(1, HOUR)).unwrap();
        }
        let waiter = tokio::spawn({
            let limiter = limiter.clone();
            async move { limiter.acquire(key(0)).await }
        });
        while limiter.peek(key(0)).await.unwrap().reset_after <= HOUR {
            tokio::task::yield_now().await;
        }
        assert_harmless(&registry);
        assert_harmless(&limiter);
        assert_harmless(&limiter.charge(key(0)));
        waiter.abort();
    })
    .await;
}

/// Redis repeats keys and arguments in some of its errors.
#[tokio::test]
async fn errors_of_redis_are_harmless() {
    let server = Server::start_with(&["--requirepass", "right"]).operated_by("default", "right");
    let connect = |user: &str, password: &str| {
        let builder = Registry::builder().on_store_error(OnStoreError::Deny).deadline(HOUR / 120);
        builder.connect_lazy(&server.url_as(user, password)).unwrap()
    };
    let error = async |registry: Registry| {
        let limiter = registry.limiter("a", FixedWindow::new(1, HOUR)).unwrap();
        limiter.try_acquire(key(0)).await.unwrap_err()
    };
    assert_harmless(&error(connect("default", SECRET)).await);
    let no_keys = ["~other:*", "+@all"];
    server.set_user("limited", SECRET, &no_keys).await;
    assert_harmless(&error(connect("limited", SECRET)).await);
    server.set_user("limited", SECRET, &["~*", "+@all", "-get"]).await;
    assert_harmless(&error(connect("limited", SECRET)).await);

    let registry = connect("default", "right");
    let limiter = registry.limiter("a", FixedWindow::new(2, HOUR)).unwrap();
    limiter.try_acquire(key(0)).await.unwrap();
    let keys: Vec<String> = server.command(&["KEYS", "*"]).await;
    assert!(keys[0].contains(SECRET));
    for value in [["SET", &keys[0], SECRET], ["RPUSH", &keys[0], SECRET]] {
        let () = server.command(&["DEL", &keys[0]]).await;
        let () = server.command(&value).await;
        assert_harmless(&limiter.try_acquire(key(0)).await.unwrap_err());
    }
    for url in [format!("redis://{SECRET}:{SECRET}@host:no-port"), format!("{SECRET}://{SECRET}@host")] {
        assert_harmless(&Registry::connect_lazy(&url).unwrap_err());
    }
}
