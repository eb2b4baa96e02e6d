//! The policies of attributes: which there are, and what their keys hold.

use std::time::Duration;

use ratelimits::{
    Algorithm, DecidedBy, Error, FixedWindow, LeakyBucket, Registry, TokenBucket, count_limit, funnel_limit,
    policies, rate_limit, window_limit,
};

use crate::support::registries::on_each_registry;

const DAY: Duration = Duration::from_secs(86_400);

#[rate_limit(rate = "10/d", burst = 10, key = id, name = "policies.literal", prefix = "p", shadow)]
#[count_limit(limit = 100, period = "1d", name = "policies.tied", key = "<id>:<id>")]
async fn literal(id: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, burst = 10, key = id, name = "policies.bucket")]
async fn bucket(id: u64, rate: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, borrow, name = "policies.borrow", cost = 3)]
async fn borrow(rate: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "10/d", burst = burst, refill = interval, name = "policies.interval")]
async fn interval(burst: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = 5, warmup = warmup, name = "policies.warmup")]
async fn warming_up(warmup: Duration) -> Result<(), Error> {
    Ok(())
}

#[funnel_limit(capacity = capacity, drain = "10d", name = "policies.meter")]
async fn meter(capacity: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = "1d", name = "policies.window")]
async fn window(limit: u64) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = limit, period = "1d", precision = "1h", name = "policies.counter")]
async fn counter(limit: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = 5, period = period, name = "policies.period")]
async fn period(period: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = 5, period = "1d", precision = precision, name = "policies.precision")]
async fn precision(precision: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = rate, burst = 10, refill = interval, name = "policies.refill")]
async fn refill(rate: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "policies.deny", on_store_error = deny)]
async fn deny() -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "policies.charged", charge_when = |out| out.is_err())]
#[allow(dead_code)]
async fn charged() -> Result<(), Error> {
    Ok(())
}

mod same {
    #[super::count_limit(1, "1d", name = "policies.same", prefix = "a")]
    pub(super) async fn a() -> Result<(), super::Error> {
        Ok(())
    }

    #[super::count_limit(2, "1d", name = "policies.same", prefix = "b")]
    pub(super) async fn b() -> Result<(), super::Error> {
        Ok(())
    }
}

#[test]
fn attributes_are_listed_before_their_first_calls() {
    #[allow(dead_code)]
    #[rate_limit(rate = 1.0 / 60.0, key = "<user.len()>:<@ip>", timeout = "1s", on_store_error = deny)]
    async fn uncalled(user: &str) -> Result<(), Error> {
        Ok(())
    }

    let policies = policies();
    let named = |name: &str| policies.iter().find(|policy| *policy.name == *name).expect("it is listed");
    let function = "it::policies::attributes_are_listed_before_their_first_calls::uncalled";
    let uncalled = named(function);
    assert_eq!((uncalled.attribute, uncalled.algorithm), ("rate_limit", Algorithm::TokenBucket));
    assert_eq!(uncalled.arguments, "rate = 1.0 / 60.0, timeout = \"1s\", on_store_error = deny");
    assert_eq!((uncalled.key, &*uncalled.function), (Some("<user.len()>:<@ip>"), function));
    assert_eq!((uncalled.module, uncalled.file), ("it::policies", file!()));
    assert_eq!(uncalled.policy, Some(TokenBucket::new("1/min".parse().unwrap()).into()));

    assert!(named("policies.charged").arguments.ends_with("charge_when = |out| out.is_err()"));
    let literal = named("policies.literal");
    assert_eq!((literal.prefix, literal.flags), ("p", &["shadow"][..]));
    assert_eq!(named("policies.tied").line, literal.line + 1);
    let computed = named("policies.bucket");
    assert_eq!((computed.policy, computed.arguments), (None, "rate = rate, burst = 10"));
}

#[test]
fn clashes_are_found_before_any_call() {
    mod clashing {
        #[super::count_limit(1, "1d", name = "policies.clash")]
        pub(super) async fn one() -> Result<(), super::Error> {
            Ok(())
        }

        #[super::count_limit(2, "1d", name = "policies.clash")]
        pub(super) async fn other() -> Result<(), super::Error> {
            Ok(())
        }
    }
    mod settled_and_not {
        #[super::rate_limit(1, 10, name = "policies.settled")]
        pub(super) async fn one() -> Result<u64, super::Error> {
            Ok(1)
        }

        #[super::rate_limit(1, 10, name = "policies.settled", settle = |out| *out.as_ref().unwrap_or(&1))]
        pub(super) async fn other() -> Result<u64, super::Error> {
            Ok(1)
        }
    }
    let _ = (clashing::one, clashing::other, settled_and_not::one, settled_and_not::other);

    let error = ratelimits::check_policies().unwrap_err();
    let problems: Vec<_> = error.problems().filter(|problem| problem.contains("policies.")).collect();
    let expected =
        ["with different numbers", "of which one settles, pauses or binds its calls, and the other does not"];
    assert_eq!(problems.len(), expected.len(), "{problems:?}");
    for difference in expected {
        let difference = format!("two policies {difference} (tests/it/policies.rs:");
        assert!(problems.iter().any(|problem| problem.contains(&difference)), "{problems:?}");
    }
    assert!(problems.iter().all(|problem| error.to_string().contains(*problem)));
}

#[tokio::test]
async fn policies_are_found_by_name() {
    let registry = Registry::in_memory();
    let error = |name| registry.policy(name).unwrap_err().to_string();
    assert_eq!(
        error("policies.litteral"),
        "no policy is named `policies.litteral`; did you mean `policies.literal`?"
    );
    assert_eq!(error("?"), "no policy is named `?`; `ratelimits::policies()` lists the names");
    assert_eq!(
        error("policies.same"),
        "several policies are named `policies.same`; write one of `a:policies.same`, `b:policies.same`"
    );
    registry.scope(async { same::a().await.and(same::b().await) }).await.unwrap();
    assert_eq!(registry.policy("a:policies.same").unwrap().peek(()).await.unwrap().remaining, 0);
    assert_eq!(registry.policy("b:policies.same").unwrap().peek(()).await.unwrap().remaining, 1);
    assert_eq!(registry.policy("p:policies.literal").unwrap().info().prefix, "p");
}

#[tokio::test]
async fn handles_share_the_state_of_functions() {
    on_each_registry(async |registry, _| {
        registry.scope(literal(7)).await.unwrap();
        for (name, limit) in [("policies.literal", 10), ("policies.tied", 100)] {
            let policy = registry.policy(name).unwrap();
            let of = async |remaining: u64| match name {
                "policies.tied" => {
                    assert_eq!(policy.peek((7, 7)).await.unwrap().remaining, remaining);
                    policy.usage((7, 7)).await.unwrap()
                }
                _ => {
                    assert_eq!(policy.peek(7).await.unwrap().remaining, remaining);
                    policy.usage(7).await.unwrap()
                }
            };
            let usage = of(limit - 1).await;
            assert!(usage.used == 1 && !usage.reset_after.is_zero(), "{name}: {usage:?}");
            for was_state in [true, false] {
                let reset = match name {
                    "policies.tied" => policy.reset((7, 7)).await,
                    _ => policy.reset(7).await,
                };
                assert_eq!(reset.unwrap(), was_state, "{name}");
            }
            let usage = of(limit).await;
            assert!(usage.used == 0 && usage.reset_after.is_zero(), "{name}: {usage:?}");
        }
        let limiter = registry.policy("policies.literal").unwrap().limiter().unwrap();
        limiter.try_acquire_n(7, 10).await.unwrap();
        let peeked = registry.policy("policies.literal").unwrap().peek(7).await.unwrap();
        assert!(peeked.remaining == 0 && peeked.retry_after.is_some(), "{peeked:?}");
    })
    .await;
}

#[tokio::test]
async fn usage_needs_no_computed_numbers() {
    on_each_registry(async |registry, _| {
        let calls = async {
            bucket(7, "10/d").await?;
            bucket(7, "20/d").await?;
            borrow("5/d").await?;
            interval(5).await?;
            meter(5).await?;
            window(5).await?;
            counter(5).await?;
            warming_up(DAY).await?;
            period("1h").await
        };
        registry.scope(calls).await.unwrap();
        for (name, used) in [
            ("policies.borrow", 3),
            ("policies.interval", 1),
            ("policies.meter", 1),
            ("policies.window", 1),
            ("policies.counter", 1),
        ] {
            let policy = registry.policy(name).unwrap();
            let usage = policy.usage(()).await.unwrap();
            assert!(usage.used == used && !usage.reset_after.is_zero(), "{name}: {usage:?}");
            assert!(policy.limiter().unwrap_err().to_string().contains("limiter_with"), "{name}");
            assert!(policy.reset(()).await.unwrap(), "{name}");
            assert_eq!(policy.usage(()).await.unwrap().used, 0, "{name}");
        }
        let policy = registry.policy("policies.bucket").unwrap();
        assert_eq!(policy.usage(7).await.unwrap().used, 2);
        let numbers = TokenBucket::new("20/d".parse().unwrap()).burst(10);
        assert_eq!(policy.limiter_with(numbers).unwrap().peek(7).await.unwrap().remaining, 8);
    })
    .await;
}

#[tokio::test]
async fn numbers_that_the_key_depends_on_are_needed() {
    let registry = Registry::in_memory();
    registry.scope(async { period("1h").await.and(warming_up(DAY).await) }).await.unwrap();
    let policy = registry.policy("policies.period").unwrap();
    for error in [policy.usage(()).await.unwrap_err(), policy.reset(()).await.unwrap_err()] {
        assert_eq!(error.to_string(), "`period` is computed, and each has its own keys; use `limiter_with`");
    }
    registry.scope(async { precision("1h").await.and(refill("5/d").await) }).await.unwrap();
    for (name, argument) in [("policies.precision", "precision"), ("policies.refill", "rate")] {
        let policy = registry.policy(name).unwrap();
        for error in [policy.usage(()).await.unwrap_err(), policy.reset(()).await.unwrap_err()] {
            let text = error.to_string();
            assert!(
                text.starts_with(&format!("`{argument}` is computed, and each has its own keys;")),
                "{text}"
            );
        }
    }
    let window = FixedWindow::new(5, Duration::from_secs(3600));
    assert_eq!(policy.limiter_with(window).unwrap().peek(()).await.unwrap().remaining, 4);
    let other = LeakyBucket::draining(5, DAY);
    assert!(policy.limiter_with(other).unwrap_err().to_string().contains("another algorithm"));
    let literal = registry.policy("policies.literal").unwrap();
    assert!(
        literal.limiter_with(TokenBucket::per_second(1)).unwrap_err().to_string().contains("other numbers")
    );

    let policy = registry.policy("policies.warmup").unwrap();
    assert!(policy.usage(()).await.unwrap_err().to_string().contains("use `peek`"));
    let numbers = TokenBucket::per_second(5).warmup(DAY);
    assert!(!policy.limiter_with(numbers).unwrap().peek(()).await.unwrap().reset_after.is_zero());
    policy.reset(()).await.unwrap();
    assert!(policy.limiter_with(numbers).unwrap().peek(()).await.unwrap().reset_after.is_zero());
}

#[tokio::test]
async fn handles_do_as_their_attributes_on_store_errors() {
    // Nothing listens there.
    let registry = Registry::builder().connect_lazy("redis://127.0.0.1:1").unwrap();
    assert!(matches!(registry.scope(deny()).await, Err(Error::Store(_))));
    let policy = registry.policy("policies.deny").unwrap();
    assert!(matches!(policy.peek(()).await, Err(Error::Store(_))));
    assert!(matches!(policy.limiter().unwrap().try_acquire(()).await, Err(Error::Store(_))));
    assert!(matches!(policy.usage(()).await, Err(Error::Store(_))));
    // By default, calls are decided in process.
    let policy = registry.policy("a:policies.same").unwrap();
    assert_eq!(policy.peek(()).await.unwrap().source, DecidedBy::Local);
}
