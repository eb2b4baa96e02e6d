//! Limiters and registries, on both stores.

use std::time::Duration;

use ratelimits::{
    Algorithm, Error, FixedWindow, LeakyBucket, Limiter, MissingKey, Policy, Rate, Registry, RequestContext,
    SlidingWindow, Source, TokenBucket, count_limit, rate_limit,
};

use crate::support::registries::{LONG_DEADLINE, namespace, on_each_registry};
use crate::support::server::Server;

const MINUTE: Duration = Duration::from_secs(60);

fn limiter(registry: &Registry, name: &str, limit: u64) -> Limiter {
    registry.limiter(name, FixedWindow::new(limit, MINUTE)).unwrap()
}

#[tokio::test]
async fn limiter_enforces_its_policy() {
    on_each_registry(async |registry, source| {
        let limiter = registry.limiter("reports", TokenBucket::new(Rate::new(1, MINUTE)).burst(3)).unwrap();
        let decision = limiter.try_acquire("a", 2).await.unwrap();
        assert_eq!((decision.limit, decision.remaining, decision.source), (3, 1, source));
        assert_eq!((decision.retry_after, decision.waited), (None, Duration::ZERO));
        assert!(decision.reset_after > MINUTE && decision.reset_after <= 2 * MINUTE);

        let Err(Error::Limited(limited)) = limiter.try_acquire("a", 2).await else { panic!("not limited") };
        assert_eq!((limited.policy(), limited.decision().remaining), ("reports", 1));
        let wait = limited.decision().retry_after.unwrap();
        assert!(wait > Duration::ZERO && wait <= MINUTE, "{wait:?}");
        assert!(limiter.try_acquire("b", 3).await.is_ok());
    })
    .await;
}

#[tokio::test]
async fn zero_cost_is_skipped() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "free", 1);
        limiter.try_acquire("a", 1).await.unwrap();
        let decision = limiter.try_acquire("a", 0).await.unwrap();
        assert_eq!((decision.source, decision.remaining), (Source::Skipped, 1));
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
                let error = limiter.try_acquire("a", cost).await.unwrap_err();
                assert!(error.is_limited() && error.retry_after().is_none(), "{error}");
            }
            assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
        }
    })
    .await;
}

#[tokio::test]
async fn refund_and_reset() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "refunds", 5);
        let first = limiter.try_acquire("a", 3).await.unwrap();
        let _second = limiter.try_acquire("a", 1).await.unwrap();
        first.refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 4);
        limiter.refund("a", 100).await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
        limiter.try_acquire("a", 5).await.unwrap();
        limiter.reset("a").await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);
    })
    .await;
}

#[tokio::test]
async fn peek_finds_what_a_call_would_get() {
    let day = 1440 * MINUTE;
    let policies: [Policy; 8] = [
        TokenBucket::new(Rate::new(3, day)).burst(3).into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).interval_refill().into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).adjustable().into(),
        LeakyBucket::draining(3, day).into(),
        FixedWindow::new(3, day).into(),
        FixedWindow::new(3, 3000 * day).aligned().into(),
        SlidingWindow::new(3, day).into(),
        SlidingWindow::new(3, day).precision(day / 24).into(),
    ];
    on_each_registry(async |registry, source| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("peeked {i}"), policy).unwrap();
            for left in [3, 2, 1] {
                for _ in 0..2 {
                    let peeked = limiter.peek("a").await.unwrap();
                    assert_eq!((peeked.remaining, peeked.retry_after), (left, None), "{policy:?}");
                    assert!(peeked.policies()[0].admitted);
                }
                limiter.try_acquire("a", 1).await.unwrap();
            }
            let peeked = limiter.peek("a").await.unwrap();
            assert_eq!((peeked.limit, peeked.remaining, peeked.source), (3, 0, source), "{policy:?}");
            assert!(!peeked.policies()[0].admitted, "{policy:?}");
            let refused = limiter.try_acquire("a", 1).await.unwrap_err().retry_after().unwrap();
            assert!(peeked.retry_after.unwrap() >= refused && refused > Duration::ZERO, "{policy:?}");
            peeked.refund().await.unwrap();
            assert_eq!(limiter.peek("a").await.unwrap().remaining, 0, "{policy:?}");
        }
    })
    .await;
}

/// As it would if it did not wait.
#[tokio::test]
async fn peek_at_a_queue_finds_whether_a_call_would_have_to_wait() {
    on_each_registry(async |registry, _| {
        let policy = LeakyBucket::new(3, Rate::new(1, 60 * MINUTE)).queue();
        let limiter = registry.limiter("peeked queue", policy).unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().retry_after, None);
        limiter.try_acquire("a", 1).await.unwrap();
        let peeked = limiter.peek("a").await.unwrap();
        assert_eq!((peeked.remaining, peeked.policies()[0].admitted), (3, false));
        assert!(peeked.retry_after.unwrap() <= 60 * MINUTE);
    })
    .await;
}

#[tokio::test]
async fn reset_tells_whether_there_was_state() {
    let day = 1440 * MINUTE;
    let policies: [Policy; 5] = [
        TokenBucket::new(Rate::new(3, day)).burst(3).into(),
        TokenBucket::new(Rate::new(3, day)).burst(3).adjustable().into(),
        TokenBucket::new(Rate::new(3, day)).warmup(day).into(),
        FixedWindow::new(3, day).into(),
        SlidingWindow::new(3, day).into(),
    ];
    on_each_registry(async |registry, _| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("states {i}"), policy).unwrap();
            assert!(!limiter.reset("a").await.unwrap(), "{policy:?}");
            limiter.try_acquire("a", 1).await.unwrap();
            assert!(!limiter.reset("b").await.unwrap(), "{policy:?}");
            assert!(limiter.reset("a").await.unwrap(), "{policy:?}");
            limiter.peek("a").await.unwrap();
            assert!(!limiter.reset("a").await.unwrap(), "{policy:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn receipts_expire_on_reset() {
    let second = Duration::from_secs(1);
    let policies: [Policy; 4] = [
        FixedWindow::new(3, MINUTE).into(),
        FixedWindow::new(3, 60 * 24 * MINUTE).aligned().into(),
        SlidingWindow::new(3, MINUTE).into(),
        SlidingWindow::new(3, 1000 * second).precision(500 * second).into(),
    ];
    on_each_registry(async |registry, _| {
        for (i, policy) in policies.into_iter().enumerate() {
            let limiter = registry.limiter(&format!("reset {i}"), policy).unwrap();
            let before = limiter.try_acquire("a", 3).await.unwrap();
            limiter.reset("a").await.unwrap();
            limiter.try_acquire("a", 3).await.unwrap();
            before.refund().await.unwrap();
            assert!(limiter.try_acquire("a", 1).await.unwrap_err().is_limited(), "{policy:?}");
        }
    })
    .await;
}

/// A bucket's state does not tell that it was reset: what `Limiter::reset` documents.
#[tokio::test]
async fn receipts_of_a_bucket_outlive_a_reset_by_one_capacity() {
    on_each_registry(async |registry, _| {
        let policy = TokenBucket::new(Rate::new(1, 60 * MINUTE)).burst(6);
        let limiter = registry.limiter("receipts", policy).unwrap();
        let mut receipts = Vec::new();
        for _ in 0..3 {
            receipts.push(limiter.try_acquire("a", 2).await.unwrap());
        }
        limiter.reset("a").await.unwrap();
        limiter.try_acquire("a", 6).await.unwrap();
        let mut admitted = 0;
        for receipt in receipts {
            receipt.refund().await.unwrap();
            while limiter.try_acquire("a", 1).await.is_ok() {
                admitted += 1;
            }
        }
        assert!((1..=6).contains(&admitted), "{admitted}");
    })
    .await;
}

#[tokio::test]
async fn peek_and_zero_cost_have_no_receipt() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "peek", 5);
        limiter.try_acquire("a", 3).await.unwrap();
        limiter.peek("a").await.unwrap().refund().await.unwrap();
        limiter.try_acquire("a", 0).await.unwrap().refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 2);
    })
    .await;
}

#[tokio::test]
async fn function_defaults_to_the_name() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "same", 1);
        limiter.try_acquire((), 1).await.unwrap();
        assert!(limiter.function("same").try_acquire((), 1).await.unwrap_err().is_limited());
        assert!(limiter.function("").try_acquire((), 1).await.unwrap_err().is_limited());
        limiter.function("other").try_acquire((), 1).await.unwrap();
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
                match limiter.try_acquire("a", 1).await {
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
async fn acquire_all_is_all_or_nothing() {
    on_each_registry(async |registry, _| {
        let burst = registry.limiter("burst", TokenBucket::new(Rate::new(1, MINUTE)).burst(10)).unwrap();
        let daily = limiter(&registry, "daily", 2);
        let log = registry.limiter("log", SlidingWindow::new(3, MINUTE)).unwrap();
        let all = || [burst.charge("a", 1), daily.charge(("a", 7), 1), log.charge((), 1)];
        let decision = registry.try_acquire_all(all()).await.unwrap();
        let names: Vec<_> = decision.policies().iter().map(|policy| &*policy.policy).collect();
        assert_eq!((names, decision.remaining), (vec!["burst", "daily", "log"], 1));
        registry.try_acquire_all(all()).await.unwrap();

        let Err(Error::Limited(limited)) = registry.try_acquire_all(all()).await else {
            panic!("not limited")
        };
        assert_eq!(limited.policy(), "daily");
        let remaining: Vec<_> = limited.decision().policies().iter().map(|policy| policy.remaining).collect();
        assert_eq!(remaining, [8, 0, 1]);
        assert_eq!(burst.peek("a").await.unwrap().remaining, 8);
        assert_eq!(log.peek(()).await.unwrap().remaining, 1);

        decision.refund().await.unwrap();
        registry.try_acquire_all(all()).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn longest_retry_after_is_reported() {
    on_each_registry(async |registry, _| {
        let short = registry.limiter("short", FixedWindow::new(1, MINUTE)).unwrap();
        let long = registry.limiter("long", FixedWindow::new(1, 60 * MINUTE)).unwrap();
        let never = registry.limiter("never", FixedWindow::new(1, MINUTE / 2)).unwrap();
        let charge = |cost| [short.charge("a", 1), long.charge("a", 1), never.charge("b", cost)];
        registry.try_acquire_all(charge(1)).await.unwrap();
        let error = registry.try_acquire_all(charge(1)).await.unwrap_err();
        assert!(matches!(&error, Error::Limited(limited) if limited.policy() == "long"), "{error}");
        let error = registry.try_acquire_all(charge(2)).await.unwrap_err();
        assert!(matches!(&error, Error::Limited(limited) if limited.policy() == "never"), "{error}");
        assert_eq!(error.retry_after(), None);
    })
    .await;
}

#[tokio::test]
async fn charges_on_one_key_add_up() {
    on_each_registry(async |registry, _| {
        let limiter = limiter(&registry, "twice", 5);
        let charge = |cost| limiter.charge("a", cost);
        assert!(registry.try_acquire_all([charge(3), charge(3)]).await.unwrap_err().is_limited());
        let decision = registry.try_acquire_all([charge(2), charge(3)]).await.unwrap();
        assert_eq!(decision.remaining, 0);
        decision.refund().await.unwrap();
        assert_eq!(limiter.peek("a").await.unwrap().remaining, 5);

        let other = registry.limiter("twice", FixedWindow::new(9, MINUTE)).unwrap();
        let error = registry.try_acquire_all([charge(1), other.charge("a", 1)]).await.unwrap_err();
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    })
    .await;
}

#[tokio::test]
async fn empty_and_mixed_lists_are_invalid() {
    let (one, other) = (Registry::in_memory(), Registry::in_memory());
    let charges = [limiter(&one, "a", 1).charge((), 1), limiter(&other, "a", 1).charge((), 1)];
    assert!(matches!(one.try_acquire_all(charges).await, Err(Error::Invalid(_))));
    assert!(matches!(one.try_acquire_all([]).await, Err(Error::Invalid(_))));
}

#[tokio::test]
async fn registries_share_state_by_namespace() {
    let server = Server::shared();
    let limiter = |namespace: &str| {
        let builder = Registry::builder().namespace(namespace).deadline(LONG_DEADLINE);
        limiter(&builder.connect_lazy(&server.url()).unwrap(), "shared", 2)
    };
    limiter("one").try_acquire("a", 1).await.unwrap();
    limiter("one").try_acquire("a", 1).await.unwrap();
    assert!(limiter("one").try_acquire("a", 1).await.unwrap_err().is_limited());
    limiter("two").try_acquire("a", 1).await.unwrap();
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
        mail.try_acquire(("ann", 7), 2).await.unwrap();
        registry.scope(send("ann")).await.unwrap();
        assert!(registry.scope(send("ann")).await.unwrap_err().is_limited());
        assert!(registry.scope(send("bob")).await.is_ok());
        assert!(mail.prefix("").try_acquire(("ann", 7), 3).await.is_ok());
        assert!(mail.function("app::send").try_acquire(("ann", 7), 3).await.is_ok());

        let policy = TokenBucket::new("1/min".parse().unwrap()).burst(3);
        let rebuilds = registry.limiter(concat!(module_path!(), "::rebuild"), policy).unwrap();
        rebuilds.try_acquire((), 3).await.unwrap();
        assert!(registry.scope(rebuild()).await.unwrap_err().is_limited());
    })
    .await;
}

#[tokio::test]
async fn only_changed_limits_keep_the_count() {
    on_each_registry(async |registry, _| {
        limiter(&registry, "window", 5).try_acquire("a", 3).await.unwrap();
        assert_eq!(limiter(&registry, "window", 10).peek("a").await.unwrap().remaining, 7);
        assert_eq!(limiter(&registry, "window", 2).peek("a").await.unwrap().remaining, 0);
        let hour = registry.limiter("window", FixedWindow::new(5, 60 * MINUTE)).unwrap();
        assert_eq!(hour.peek("a").await.unwrap().remaining, 5);

        let bucket = |burst| registry.limiter("bucket", TokenBucket::per_second(1).burst(burst)).unwrap();
        bucket(5).try_acquire("a", 5).await.unwrap();
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
        limiter.try_acquire((), 1).await.unwrap();
        for a in keys {
            limiter.try_acquire(a, 1).await.unwrap_or_else(|error| panic!("{a:?}: {error}"));
            for b in keys {
                limiter.try_acquire((a, b), 1).await.unwrap_or_else(|error| panic!("{a:?} {b:?}: {error}"));
            }
        }
        for a in keys {
            assert!(limiter.try_acquire(a, 1).await.unwrap_err().is_limited());
        }
    })
    .await;
}

#[count_limit(1, "1m", key_type = IP)]
async fn by_ip() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1m", key = "<@user_or_ip>")]
async fn by_user_or_ip() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn request_context_keys() {
    on_each_registry(async |registry, _| {
        let from = |ip: &str| RequestContext::new().with_ip(ip.parse::<std::net::IpAddr>().unwrap());
        let call = |context: RequestContext| registry.scope(context.scope(by_ip()));
        call(from("2001:db8::1")).await.unwrap();
        assert!(call(from("2001:db8::2")).await.unwrap_err().is_limited());
        call(from("2001:db8:0:1::2")).await.unwrap();
        call(from("192.0.2.1")).await.unwrap();
        assert!(call(from("::ffff:192.0.2.1")).await.unwrap_err().is_limited());
        let missing = registry.scope(by_ip()).await.unwrap_err();
        assert!(matches!(missing, Error::MissingKey(MissingKey::Ip)), "{missing}");

        let call = |context: RequestContext| registry.scope(context.scope(by_user_or_ip()));
        call(from("192.0.2.1")).await.unwrap();
        call(RequestContext::new().with_user("192.0.2.1")).await.unwrap();
        call(from("192.0.2.1").with_user("ann")).await.unwrap();
        assert!(call(from("192.0.2.9").with_user("ann")).await.unwrap_err().is_limited());
        assert!(call(from("192.0.2.1")).await.unwrap_err().is_limited());
    })
    .await;
}

#[count_limit(1, "1m", key_type = USER)]
async fn by_user() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn blank_users_are_missing() {
    on_each_registry(async |registry, _| {
        for blank in ["", " ", "\t\r\n", "\u{a0}\u{3000}"] {
            let context = || RequestContext::new().with_user("ann").with_user(blank);
            let refused = registry.scope(context().scope(by_user())).await.unwrap_err();
            assert!(matches!(refused, Error::MissingKey(MissingKey::User)), "{blank:?}: {refused}");
            let refused = registry.scope(context().scope(by_user_or_ip())).await.unwrap_err();
            assert!(matches!(refused, Error::MissingKey(MissingKey::Ip)), "{blank:?}: {refused}");
        }
        // Without a user it counts by address.
        let from = |ip: [u8; 4]| RequestContext::new().with_user(" ").with_ip(ip).scope(by_user_or_ip());
        registry.scope(from([192, 0, 2, 1])).await.unwrap();
        registry.scope(from([192, 0, 2, 2])).await.unwrap();
        assert!(registry.scope(from([192, 0, 2, 1])).await.unwrap_err().is_limited());
        // A user is used as written.
        for user in ["ann", " ann", "ann "] {
            registry.scope(RequestContext::new().with_user(user).scope(by_user())).await.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn unlimited_registry_refuses_nothing() {
    let registry = Registry::unlimited();
    let limiter = limiter(&registry, "off", 1);
    for _ in 0..3 {
        assert_eq!(limiter.try_acquire("a", 1).await.unwrap().source, Source::Skipped);
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
