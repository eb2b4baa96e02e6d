//! Keys that a refusal pauses, in every process.

use std::time::Duration;

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};
use tokio::task::JoinSet;

#[cfg(feature = "overrides")]
use crate::overrides;
use crate::support::registries::{LONG_DEADLINE, namespace, on, on_each_registry};
use crate::support::server::Server;
use crate::support::until::until;

const HOUR: Duration = Duration::from_secs(3600);

#[count_limit(2, "50ms", key = user, name = "penalty.count", penalty = ["1h", "2h"])]
async fn count(user: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit("1/day", burst = 2, key = user, name = "penalty.rate", penalty = ["1h", "2h"])]
async fn rate(user: &str) -> Result<(), Error> {
    Ok(())
}

#[window_limit(limit = most, period = "1d", key = user, name = "penalty.window", penalty = ["1h", "2h"])]
async fn window(user: &str, most: u64) -> Result<(), Error> {
    Ok(())
}

/// The steps of the penalties of a key by three policies.
async fn steps(registry: &Registry, key: &str) -> [u64; 3] {
    let mut steps = [0; 3];
    for (step, name) in steps.iter_mut().zip(["penalty.count", "penalty.rate", "penalty.window"]) {
        *step = registry.policy(name).unwrap().usage(key).await.unwrap().penalty_step;
    }
    steps
}

#[tokio::test]
async fn refusals_pause_keys_once_until_they_admit_again() {
    on_each_registry(async |registry, _| {
        registry
            .scope(async {
                // Three of a window of 50 ms may come too late.
                while count("ada").await.is_ok() {}
                for _ in 0..2 {
                    rate("ada").await.unwrap();
                    window("ada", 2).await.unwrap();
                }
                for _ in 0..3 {
                    let refused = [
                        count("ada").await,
                        rate("ada").await,
                        window("ada", 2).await,
                        window("ada", 1).await,
                    ];
                    for refused in refused.map(Result::unwrap_err) {
                        assert!(refused.retry_after() > Some(HOUR - HOUR / 60), "{refused}");
                        assert!(refused.is_limited(), "{refused}");
                    }
                    assert_eq!(steps(&registry, "ada").await, [1; 3]);
                }
                assert_eq!(steps(&registry, "grace").await, [0; 3]);
                for name in ["penalty.count", "penalty.rate", "penalty.window"] {
                    assert!(registry.policy(name).unwrap().reset("ada").await.unwrap());
                }
                assert_eq!(steps(&registry, "ada").await, [0; 3]);
                count("ada").await.unwrap();
                rate("ada").await.unwrap();
                window("ada", 2).await.unwrap();
            })
            .await;
    })
    .await;
}

#[count_limit(2, "20ms", key = user, name = "penalty.short", penalty = ["30ms", "60ms", "1h"])]
async fn short(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn penalties_grow_with_each_opening() {
    on_each_registry(async |registry, _| {
        let step =
            async || registry.policy("penalty.short").unwrap().usage("ada").await.unwrap().penalty_step;
        for expected in 1..=3 {
            until("the key is penalized", Duration::from_secs(20), async || {
                for _ in 0..3 {
                    let _ = registry.scope(short("ada")).await;
                }
                match step().await {
                    step if step >= expected => Ok(()),
                    step => Err(step.to_string()),
                }
            })
            .await;
        }
        let refused = registry.scope(short("ada")).await.unwrap_err();
        assert!(refused.retry_after() > Some(HOUR / 2), "{refused}");
    })
    .await;
}

#[count_limit(5, "1d", key = user, name = "penalty.crowd", penalty = ["10ms", "1h"])]
async fn crowd(user: u64) -> Result<(), Error> {
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refusals_at_one_time_are_one_penalty() {
    let (server, namespace) = (Server::shared(), namespace());
    let registries: Vec<Registry> = (0..4)
        .map(|_| {
            let builder = Registry::builder().namespace(&*namespace).deadline(LONG_DEADLINE);
            builder.connect_lazy(&server.url()).unwrap()
        })
        .collect();
    let memory = Registry::in_memory();
    let mut calls = JoinSet::new();
    for i in 0..400_u64 {
        for registry in [&registries[i as usize % 4], &memory] {
            let registry = registry.clone();
            calls.spawn(async move { registry.scope(crowd(i % 3)).await.is_ok() });
        }
    }
    let admitted = calls.join_all().await.into_iter().filter(|admitted| *admitted).count();
    assert_eq!(admitted, 2 * 3 * 5);
    for registry in [&registries[0], &memory] {
        for user in 0..3_u64 {
            let usage = registry.policy("penalty.crowd").unwrap().usage(user).await.unwrap();
            assert_eq!((usage.used, usage.penalty_step), (5, 1));
        }
    }
}

#[count_limit(2, "1d", key = user, name = "penalty.outage", penalty = ["1h"])]
async fn during_outage(user: &str) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn processes_without_redis_penalize_what_they_decide() {
    let server = Server::start();
    let registry = on(&server);
    drop(server);
    registry
        .scope(async {
            while during_outage("ada").await.is_ok() {}
            let refused = during_outage("ada").await.unwrap_err();
            assert!(refused.is_limited() && refused.retry_after() > Some(HOUR), "{refused}");
        })
        .await;
}

#[tokio::test]
async fn lost_data_ends_penalties() {
    let server = Server::start();
    let registry = on(&server);
    registry
        .scope(async {
            while count("ada").await.is_ok() {}
            assert_eq!(steps(&registry, "ada").await, [1, 0, 0]);
            server.command::<()>(&["FLUSHALL"]).await;
            assert_eq!(steps(&registry, "ada").await, [0; 3]);
            until("it admits calls again", Duration::from_secs(20), async || {
                count("ada").await.map_err(|error| error.to_string())
            })
            .await;
        })
        .await;
}

#[cfg(feature = "overrides")]
#[count_limit(1, "1d", key = user, name = "penalty.shadowed", penalty = ["1h"])]
#[count_limit(2, "1d", key = user, name = "penalty.required")]
async fn shadowed(user: &str) -> Result<(), Error> {
    Ok(())
}

#[cfg(feature = "overrides")]
#[tokio::test]
async fn policies_that_are_overridden_to_be_shadows_penalize_nobody() {
    overrides::on_each_registry("[\"penalty.shadowed\"]\nshadow = true\n", async |registry, _| {
        let calls = async {
            for _ in 0..2 {
                shadowed("ada").await.unwrap();
            }
            assert!(shadowed("ada").await.unwrap_err().is_limited());
        };
        registry.scope(calls).await;
        let usage = registry.policy("penalty.shadowed").unwrap().usage("ada").await.unwrap();
        assert_eq!((usage.used, usage.penalty_step), (1, 0));
    })
    .await;
}

/// A bucket that may be penalized has one state, whatever its numbers, and so does a window.
#[cfg(feature = "overrides")]
#[tokio::test]
async fn overrides_forget_no_penalty() {
    const NONE: &str = "# none\n";
    overrides::on_each_registry(NONE, async |registry, file| {
        let calls = async {
            for _ in 0..2 {
                rate("ada").await.unwrap();
            }
            rate("ada").await.unwrap_err();
            let changed =
                ["[\"penalty.rate\"]\nburst = 50\n", "[\"penalty.rate\".keys.ada]\nrate = \"9/s\"\n"];
            // None in between, so that each is seen to come.
            for text in changed.into_iter().flat_map(|text| [text, NONE]) {
                file.replace(text);
                let policies: &[&str] = if text == NONE { &[] } else { &["penalty.rate"] };
                overrides::in_force(registry, policies).await;
                let refused = rate("ada").await.unwrap_err();
                assert!(refused.retry_after() > Some(HOUR / 2), "{refused} with {text:?}");
                assert_eq!(steps(registry, "ada").await[1], 1, "{text:?}");
            }
        };
        registry.scope(calls).await;
    })
    .await;
}
