//! Limiters and registries, on both stores.

mod all_or_nothing;
mod peek_and_reset;
mod request_context;

use std::time::Duration;

use ratelimits::{
    Algorithm, DecidedBy, Error, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow,
    TokenBucket, count_limit, rate_limit,
};

use crate::support::registries::{LONG_DEADLINE, namespace, on_each_registry};
use crate::support::server::Server;
use request_context::by_ip;

const MINUTE: Duration = Duration::from_secs(60);

fn limiter(registry: &Registry, name: &str, limit: u64) -> Limiter {
    registry.limiter(name, FixedWindow::new(limit, MINUTE)).unwrap()
}

#[tokio::test]
async fn hashed_keys_are_not_readable() {
    let server = Server::shared();
    let namespace = namespace();
    let registry = |hashes: bool| {
        let builder = Registry::builder().namespace(&namespace).deadline(LONG_DEADLINE);
        let builder = if hashes { builder.hash_keys() } else { builder };
        builder.connect_lazy(&server.url()).unwrap()
    };
    let keys = async || -> Vec<String> { server.command(&["KEYS", &format!("{namespace}:*")]).await };
    let (one, other) = (limiter(&registry(true), "uploads", 2), limiter(&registry(true), "uploads", 2));
    for (limiter, remaining) in [(&one, 1), (&other, 0)] {
        assert_eq!(limiter.try_acquire("sk_live_7").await.unwrap().remaining, remaining);
    }
    one.try_acquire("sk_live_8").await.unwrap();
    one.try_acquire(()).await.unwrap();
    let all = keys().await;
    assert!(all.len() == 3 && !all.iter().any(|key| key.contains("sk_live")), "{all:?}");
    assert!(one.reset("sk_live_7").await.unwrap());
    assert_eq!(keys().await.len(), 2);
    limiter(&registry(false), "uploads", 2).try_acquire("sk_live_7").await.unwrap();
    assert!(keys().await.iter().any(|key| key.ends_with(":sk_live_7")));
}

#[tokio::test]
async fn limiter_enforces_its_policy() {
    on_each_registry(async |registry, source| {
        let limiter = registry.limiter("reports", TokenBucket::new(Rate::new(1, MINUTE)).burst(3)).unwrap();
        let decision = limiter.try_acquire_n("a", 2).await.unwrap();
        assert_eq!((decision.limit, decision.remaining, decision.source), (3, 1, source));
        assert_eq!((decision.retry_after, decision.waited), (None, Duration::ZERO));
        assert!(decision.reset_after > MINUTE && decision.reset_after <= 2 * MINUTE);

        let Err(Error::Limited(limited)) = limiter.try_acquire_n("a", 2).await else { panic!("not limited") };
        assert_eq!((limited.policy(), limited.decision().remaining), ("reports", 1));
        let wait = limited.decision().retry_after.unwrap();
        assert!(wait > Duration::ZERO && wait <= MINUTE, "{wait:?}");
        assert!(limiter.try_acquire_n("b", 3).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn zero_cost_is_skipped() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "free", 1);
        limiter.try_acquire("a").await.unwrap();
        let decision = limiter.try_acquire_n("a", 0).await.unwrap();
        assert_eq!((decision.source, decision.remaining), (DecidedBy::Skipped, 1));
    })
    .await;
}

#[tokio::test]
async fn unsatisfiable_cost_has_no_retry_after() {
    on_each_registry(async |registry, _| {
        let bucket = registry.limiter("bucket", TokenBucket::per_second(5)).unwrap();
        let log = registry.limiter("log", SlidingWindow::new(5, MINUTE)).unwrap();
        let interval = TokenBucket::new(Rate::new(5, MINUTE)).interval_refill();
        let interval = registry.limiter("interval", interval).unwrap();
        for limiter in [bucket, log, interval, limiter(&registry, "window", 5)] {
            for cost in [6, 1 << 53, u64::MAX] {
                let error = limiter.try_acquire_n("a", cost).await.unwrap_err();
                assert!(error.is_limited() && error.retry_after().is_none(), "{error}");
            }
            assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
        }
    })
    .await;
}

#[tokio::test]
async fn function_defaults_to_the_name() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "same", 1);
        limiter.try_acquire(()).await.unwrap();
        assert!(limiter.function("same").try_acquire(()).await.unwrap_err().is_limited());
        assert!(limiter.function("").try_acquire(()).await.unwrap_err().is_limited());
        limiter.function("other").try_acquire(()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn decisions_name_the_algorithms() {
    use Algorithm::{
        FixedWindow as Window, LeakyBucket as Funnel, SlidingWindow as Sliding, TokenBucket as Bucket,
    };
    let rate = Rate::new(1, MINUTE);
    let policies: [(Algorithm, &str, Policy); 9] = [
        (Bucket, "token bucket", TokenBucket::new(rate).burst(1).into()),
        (Bucket, "token bucket", TokenBucket::new(rate).burst(1).interval_refill().into()),
        (Bucket, "token bucket", TokenBucket::new(rate).burst(1).borrow().into()),
        (Bucket, "token bucket", TokenBucket::new(rate).warmup(MINUTE).into()),
        (Window, "fixed window", FixedWindow::new(1, MINUTE).into()),
        (Funnel, "leaky bucket", LeakyBucket::new(1, rate).into()),
        (Funnel, "leaky bucket", LeakyBucket::new(1, rate).queue().into()),
        (Sliding, "sliding window", SlidingWindow::new(1, MINUTE).into()),
        (Sliding, "sliding window", SlidingWindow::new(1, MINUTE).precision(MINUTE / 6).into()),
    ];
    on_each_registry(async |registry, _| {
        for (i, (algorithm, name, policy)) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("algorithm {i}"), policy).unwrap();
            assert_eq!((policy.algorithm(), algorithm.to_string()), (algorithm, name.to_owned()));
            let limited = loop {
                match limiter.try_acquire("a").await {
                    Ok(decision) => assert_eq!(decision.policies()[0].algorithm, algorithm, "{policy:?}"),
                    Err(Error::Limited(limited)) => break limited,
                    Err(error) => panic!("{policy:?}: {error}"),
                }
            };
            assert_eq!(limited.algorithm(), algorithm, "{policy:?}");
            let text = format!("limited by policy `algorithm {i}` ({name}); retry after ");
            assert!(limited.to_string().starts_with(&text), "{limited}");
        }
    })
    .await;
}

#[tokio::test]
async fn registries_share_state_by_namespace() {
    let server = Server::shared();
    let limiter = |namespace: &str| {
        let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
        limiter(&builder.connect_lazy(&server.url()).unwrap(), "shared", 2)
    };
    limiter("one").try_acquire("a").await.unwrap();
    limiter("one").try_acquire("a").await.unwrap();
    assert!(limiter("one").try_acquire("a").await.unwrap_err().is_limited());
    limiter("two").try_acquire("a").await.unwrap();
}

#[tokio::test]
async fn functions_count_in_the_namespace_of_each_registry() {
    let server = Server::shared();
    let [one, two] = [namespace(), namespace()].map(|namespace| {
        let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
        builder.connect_lazy(&server.url()).unwrap()
    });
    for registry in [&one, &two, &one, &two, &one, &two] {
        registry.scope(send("ann")).await.unwrap();
    }
    for registry in [one, two] {
        assert!(registry.scope(send("ann")).await.unwrap_err().is_limited());
    }
}

#[count_limit(3, "1m", name = "mail.send", prefix = "mail", key = (user, 7))]
async fn send(user: &str) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[rate_limit("1/min", 3)]
async fn rebuild() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn limiter_shares_state_with_a_function() {
    on_each_registry(async |registry, _| {
        let mail = limiter(&registry, "mail.send", 3).prefix("mail");
        mail.try_acquire_n(("ann", 7), 2).await.unwrap();
        registry.scope(send("ann")).await.unwrap();
        assert!(registry.scope(send("ann")).await.unwrap_err().is_limited());
        assert!(registry.scope(send("bob")).await.is_ok());
        assert!(mail.prefix("").try_acquire_n(("ann", 7), 3).await.is_ok());
        assert!(mail.function("app::send").try_acquire_n(("ann", 7), 3).await.is_ok());

        let policy = TokenBucket::new("1/min".parse().unwrap()).burst(3);
        let rebuilds = registry.limiter(concat!(module_path!(), "::rebuild"), policy).unwrap();
        rebuilds.try_acquire_n((), 3).await.unwrap();
        assert!(registry.scope(rebuild()).await.unwrap_err().is_limited());
    })
    .await;
}

#[tokio::test]
async fn only_changed_limits_keep_the_count() {
    on_each_registry(async |registry, _| {
        limiter(&registry, "window", 5).try_acquire_n("a", 3).await.unwrap();
        assert_eq!(limiter(&registry, "window", 10).peek("a").await.unwrap().remaining, 7);
        assert_eq!(limiter(&registry, "window", 2).peek("a").await.unwrap().remaining, 0);
        let hour = registry.limiter("window", FixedWindow::new(5, 60 * MINUTE)).unwrap();
        assert_eq!(hour.peek("a").await.unwrap().remaining, 5);

        let bucket = |burst| registry.limiter("bucket", TokenBucket::per_second(1).burst(burst)).unwrap();
        bucket(5).try_acquire_n("a", 5).await.unwrap();
        assert_eq!(bucket(6).peek("a").await.unwrap().remaining, 6);
        let error = registry.limiter("bucket", FixedWindow::new(5, MINUTE)).unwrap_err();
        assert!(error.to_string().contains("another algorithm"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn hostile_keys_do_not_collide() {
    let megabyte = "x".repeat(1 << 20);
    let keys =
        ["", ":", "::", "{", "}", "{a}", "\0", "\n", "\r\n", "a", "a:", ":a", "%", "%3A", "~", &megabyte];
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "hostile", 1);
        limiter.try_acquire(()).await.unwrap();
        for a in keys {
            limiter.try_acquire(a).await.unwrap_or_else(|error| panic!("{a:?}: {error}"));
            for b in keys {
                limiter.try_acquire((a, b)).await.unwrap_or_else(|error| panic!("{a:?} {b:?}: {error}"));
            }
        }
        for a in keys {
            assert!(limiter.try_acquire(a).await.unwrap_err().is_limited());
        }
    })
    .await;
}

#[tokio::test]
async fn limiters_with_long_names_decide_like_others() {
    let long = "x".repeat(1_000);
    let policies: [Policy; 3] = [
        SlidingWindow::new(2, 60 * MINUTE).into(),
        SlidingWindow::new(2, 60 * MINUTE).precision(MINUTE).into(),
        TokenBucket::new("2/d".parse().unwrap()).burst(2).interval_refill().into(),
    ];
    on_each_registry(async |registry, _| {
        for (i, policy) in policies.into_iter().enumerate() {
            let name = format!("{long}{i}");
            let limiter = registry.limiter(&name, policy).unwrap();
            let decision = limiter.try_acquire_n("a", 2).await.unwrap();
            assert_eq!((&*decision.policies()[0].policy, decision.remaining), (&*name, 0));
            let Err(Error::Limited(limited)) = limiter.try_acquire("a").await else { panic!("{i}") };
            assert_eq!((limited.policy(), limited.algorithm()), (&*name, policy.algorithm()));
            decision.refund().await.unwrap();
            assert_eq!(limiter.peek("a").await.unwrap().remaining, 2, "{i}");
        }
    })
    .await;
}

#[tokio::test]
async fn unlimited_registry_refuses_nothing() {
    let registry = Registry::unlimited();
    let limiter = limiter(&registry, "off", 1);
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a").await.unwrap().source, DecidedBy::Skipped);
        registry.scope(rebuild()).await.unwrap();
    }
    limiter.refund("a", 1).await.unwrap();
    assert!(!limiter.reset("a").await.unwrap());
    registry.scope(by_ip()).await.unwrap();
}

#[test]
fn invalid_policies_are_rejected() {
    let registry = Registry::in_memory();
    let second = Duration::from_secs(1);
    let day = 86_400 * second;
    let too_large = TokenBucket::per_second(1_000_000_000_000).interval_refill();
    let invalid: [(&str, Policy); 23] = [
        ("limit", FixedWindow::new(0, day).into()),
        ("limit", FixedWindow::new(u64::MAX, day).into()),
        ("limit", SlidingWindow::new(10_001, day).into()),
        ("period", FixedWindow::new(1, Duration::ZERO).into()),
        ("period", FixedWindow::new(1, Duration::MAX).into()),
        ("period", FixedWindow::new(1, Duration::from_nanos(1500)).into()),
        ("precision", SlidingWindow::new(5, day).precision(day).into()),
        ("precision", SlidingWindow::new(5, day).precision(7 * second).into()),
        ("precision", SlidingWindow::new(5, day).precision(second).into()),
        ("rate", TokenBucket::per_second(0).into()),
        ("rate", TokenBucket::per_second(0).interval_refill().into()),
        ("rate", TokenBucket::per_second(30_000).into()),
        ("rate", TokenBucket::per_second(2_000_000).into()),
        ("rate", TokenBucket::new(Rate::new(1, Duration::MAX)).into()),
        ("rate", TokenBucket::new(Rate::new(1, Duration::ZERO)).into()),
        ("burst", TokenBucket::per_second(1).burst(0).into()),
        ("burst", TokenBucket::per_second(1).burst(1_000_000_000).into()),
        ("burst", TokenBucket::per_second(1).burst_for(Duration::ZERO).into()),
        ("burst", TokenBucket::per_second(1).interval_refill().burst_for(Duration::MAX).into()),
        ("burst", too_large.burst_for(Duration::MAX).into()),
        ("capacity", LeakyBucket::new(0, Rate::per_second(1)).into()),
        ("drain", LeakyBucket::draining(5, Duration::ZERO).into()),
        ("leak_rate", LeakyBucket::new(5, Rate::per_second(0)).into()),
    ];
    for (argument, policy) in invalid {
        match registry.limiter("invalid", policy) {
            Err(Error::Invalid(invalid)) => assert_eq!(invalid.argument(), argument, "{policy:?}"),
            other => panic!("{policy:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn numbers_with_another_period_have_keys_of_their_own() {
    let limiter = limiter(&Registry::in_memory(), "periods", 1);
    limiter.try_acquire(()).await.unwrap();
    let hourly = limiter.with_numbers(FixedWindow::new(1, Duration::from_secs(3_600))).unwrap();
    assert_eq!(hourly.peek(()).await.unwrap().remaining, 1);
    hourly.try_acquire(()).await.unwrap();
    assert!(limiter.with_numbers(TokenBucket::per_second(1)).is_err(), "it has another algorithm");
}

#[tokio::test]
async fn other_numbers_keep_the_function() {
    let named = limiter(&Registry::in_memory(), "tagged", 1).function("send");
    named.try_acquire(()).await.unwrap();
    let raised = named.with_numbers(FixedWindow::new(2, MINUTE)).unwrap();
    let (raised, written) = (raised.prefix("p"), named.prefix("p"));
    written.try_acquire(()).await.unwrap();
    assert_eq!(raised.peek(()).await.unwrap().remaining, 1);
}

#[tokio::test]
async fn single_charges_of_another_registry_are_invalid() {
    let [registry, other] = [Registry::in_memory(), Registry::in_memory()];
    let [own, others] = [&registry, &other].map(|registry| limiter(registry, "same", 2));
    own.try_acquire(()).await.unwrap();
    let charge = others.charge(());
    assert!(matches!(registry.try_acquire_all([charge]).await, Err(Error::Invalid(_))));
}
