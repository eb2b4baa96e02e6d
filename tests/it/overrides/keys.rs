//! Overrides of keys: what operators change for one customer.

use std::time::{Duration, SystemTime};

use ratelimits::{
    ConcurrencyLimit, Decision, Error, FixedWindow, Registry, TokenBucket, concurrency_limit, count_limit,
    rate_limit, window_limit,
};

use super::{DAY, Overrides, PROCESSES, WITHIN, in_force, on_each_of, on_each_registry, reported};
use crate::support::log_capture::LogCapture;
use crate::support::processes::{self, Child};
use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;
use crate::support::until::until;

#[count_limit(limit = 2, period = "1d", key = tenant, name = "keys.window")]
async fn window(tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "2/d", burst = 2, key = tenant, name = "keys.bucket")]
async fn bucket(tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(limit = limit, period = period, key = (tenant, room), name = "keys.computed")]
async fn computed(tenant: &str, room: u64, limit: u64, period: Duration) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "2/d", burst = burst, key = tenant, name = "keys.computed_bucket")]
async fn computed_bucket(tenant: &str, burst: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(rate = "9/d", burst = 9, key = tenant, name = "keys.first")]
#[count_limit(limit = 2, period = "1d", key = tenant, name = "keys.second")]
#[window_limit(limit = 5, period = "1d", name = "keys.third")]
async fn stack(tenant: &str) -> Result<(), Error> {
    Ok(())
}

#[concurrency_limit(max = 1, key = tenant, name = "keys.held")]
async fn held(tenant: &str, until: impl Future<Output = ()>) -> Result<(), Error> {
    until.await;
    Ok(())
}

#[count_limit(limit = 2, period = "1d", key = tenant, name = "keys.shadow", shadow)]
async fn in_shadow(tenant: &str) -> Result<(), Error> {
    Ok(())
}

// Known without a call.
#[allow(dead_code)]
#[count_limit(limit = 2, period = "1d", name = "keys.method")]
async fn by_method() -> Result<(), Error> {
    Ok(())
}

/// Returns how many calls are admitted before one is refused, of at most 20.
async fn admitted(call: impl AsyncFn() -> Result<(), Error>) -> usize {
    let mut admitted = 0;
    while admitted < 20 {
        match call().await {
            Ok(()) => admitted += 1,
            Err(error) if error.is_limited() => break,
            Err(error) => panic!("{error}"),
        }
    }
    admitted
}

#[tokio::test]
async fn overrides_of_keys_change_no_other_key() {
    let settings = [("a", "= 5"), ("off", ""), ("shadow", ""), ("blocked", "")];
    let text: String = ["keys.window", "keys.bucket", "keys.limiter"]
        .iter()
        .flat_map(|policy| {
            let number = if *policy == "keys.bucket" { "burst" } else { "limit" };
            settings.map(|(key, value)| {
                let setting =
                    if value.is_empty() { format!("{key} = true") } else { format!("{number} {value}") };
                format!("[\"{policy}\".keys.{key}]\n{setting}\n")
            })
        })
        .collect();
    on_each_registry(&text, async |registry, _| {
        let limiter = registry.limiter("keys.limiter", FixedWindow::new(2, DAY)).unwrap();
        for (key, calls) in [("a", 5), ("other", 2), ("off", 20), ("shadow", 20), ("blocked", 0)] {
            registry
                .scope(async {
                    assert_eq!(admitted(async || window(key).await).await, calls, "{key}");
                    assert_eq!(admitted(async || bucket(key).await).await, calls, "{key}");
                })
                .await;
            assert_eq!(admitted(async || limiter.try_acquire(key).await.map(drop)).await, calls, "{key}");
            let listed =
                admitted(async || registry.try_acquire_all([limiter.charge(key)]).await.map(drop)).await;
            assert_eq!(listed, if calls == 20 { 20 } else { 0 }, "{key}");
        }
        assert_eq!(limiter.peek("a").await.unwrap().limit, 5);
        // Turned off, it takes nothing.
        assert_eq!(limiter.peek("off").await.unwrap().remaining, 2);
        assert_eq!(registry.policy("keys.window").unwrap().usage("off").await.unwrap().used, 0);
        assert_eq!(registry.policy("keys.window").unwrap().usage("a").await.unwrap().used, 5);
        assert_eq!(registry.policy("keys.bucket").unwrap().usage("a").await.unwrap().used, 5);
        assert!(registry.policy("keys.bucket").unwrap().reset("a").await.unwrap());
        registry.scope(bucket("a")).await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn policies_of_a_stack_are_overridden_alone() {
    let text = "[\"keys.first\".keys.a]\nburst = 1\n[\"keys.second\".keys.b]\nlimit = 4\n[\"keys.second\".keys.c]\noff = true\n\
                [\"keys.first\".keys.c]\noff = true\n[\"keys.second\".keys.d]\nshadow = true\n";
    for (key, calls, refusing) in [
        ("a", 1, "keys.first"),
        ("b", 4, "keys.second"),
        ("c", 5, "keys.third"),
        ("d", 5, "keys.third"),
        ("other", 2, "keys.second"),
    ] {
        on_each_registry(text, async |registry, _| {
            registry
                .scope(async {
                    assert_eq!(admitted(async || stack(key).await).await, calls, "{key}");
                    let error = stack(key).await.unwrap_err().to_string();
                    assert!(error.contains(refusing), "{key}: {error}");
                })
                .await;
        })
        .await;
    }
}

#[tokio::test]
async fn one_customer_gets_another_number_than_computed() {
    let text = "[\"keys.computed\".keys.a.7]\nlimit = 5\n[\"keys.computed_bucket\".keys.a]\nburst = 5\n";
    on_each_registry(text, async |registry, _| {
        registry
            .scope(async {
                // Numbers that shape the keys are no reason to miss the override.
                for period in [DAY, DAY / 2, DAY / 3] {
                    assert_eq!(admitted(async || computed("a", 7, 2, period).await).await, 5);
                    assert_eq!(admitted(async || computed("a", 8, 2, period).await).await, 2);
                    assert_eq!(admitted(async || computed("a:7", 8, 3, period).await).await, 3);
                }
                assert_eq!(admitted(async || computed_bucket("a", 3).await).await, 5);
                assert_eq!(admitted(async || computed_bucket("b", 3).await).await, 3);
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn overrides_of_a_key_go_over_those_of_all() {
    let text = "[\"keys.window\"]\nlimit = 3\n[\"keys.window\".keys.a]\nlimit = 5\n[\"keys.window\".keys.s]\nshadow = true\n\
                [\"keys.bucket\"]\nburst = 3\n[\"keys.bucket\".keys.a]\nburst = 5\n[\"keys.bucket\".keys.x]\nblocked = true\n\
                [\"keys.second\"]\noff = true\n[\"keys.second\".keys.x]\nblocked = true\n\
                [\"keys.first\"]\nshadow = true\n[\"keys.first\".keys.a]\nshadow = false\nburst = 4\n";
    on_each_registry(text, async |registry, _| {
        registry
            .scope(async {
                for (key, calls) in [("a", 5), ("other", 3)] {
                    assert_eq!(admitted(async || window(key).await).await, calls, "{key}");
                    assert_eq!(admitted(async || bucket(key).await).await, calls, "{key}");
                }
                // With the numbers of all keys.
                assert_eq!(admitted(async || window("s").await).await, 20);
                assert_eq!(registry.policy("keys.window").unwrap().peek("s").await.unwrap().limit, 3);
                assert_eq!(admitted(async || bucket("x").await).await, 0);
                assert!(stack("x").await.unwrap_err().is_limited());
                assert_eq!(admitted(async || stack("a").await).await, 4);
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn prefixes_and_parts_tell_keys_apart() {
    let text = "[\"keys.limiter\".keys.a]\nlimit = 5\n[\"p:keys.limiter\".keys.a]\nlimit = 4\n\
                [\"keys.limiter\".keys.a.b]\nlimit = 3\n[\"keys.limiter\".keys.\"-7\"]\nlimit = 6\n[\"keys.limiter\".keys.\"ä ö\"]\nlimit = 7\n";
    let builder = || Registry::builder().hash_keys();
    on_each_of(text, builder, async |registry, _| {
        let limiter = registry.limiter("keys.limiter", FixedWindow::new(2, DAY)).unwrap();
        let prefixed = limiter.prefix("p");
        let peek = async |decision: Result<Decision, Error>| decision.unwrap().limit;
        assert_eq!(peek(limiter.peek("a").await).await, 5);
        assert_eq!(peek(prefixed.peek("a").await).await, 4);
        assert_eq!(peek(prefixed.peek(-7).await).await, 6);
        assert_eq!(peek(limiter.peek(("a", "b")).await).await, 3);
        assert_eq!(peek(limiter.peek("a.b").await).await, 2);
        assert_eq!(peek(limiter.peek("ä ö").await).await, 7);
        assert_eq!(peek(limiter.peek(()).await).await, 2);
        // A limiter with another name has the same keys.
        let other = registry.limiter("keys.limited", FixedWindow::new(2, DAY)).unwrap();
        assert_eq!(peek(other.peek("a").await).await, 2);
    })
    .await;
}

#[tokio::test]
async fn buckets_start_fresh_with_their_first_override_and_after_the_last() {
    on_each_registry("# none\n", async |registry, file| {
        let limiter =
            registry.limiter("keys.fresh", TokenBucket::new("2/d".parse().unwrap()).burst(2)).unwrap();
        let used = async |key| {
            let decision = limiter.peek(key).await.unwrap();
            (decision.limit, decision.limit - decision.remaining)
        };
        for key in ["a", "b"] {
            limiter.try_acquire(key).await.unwrap();
        }
        let set = async |burst: u64| {
            file.replace(&format!("[\"keys.fresh\".keys.a]\nburst = {burst}\n"));
            until("the number is in force", WITHIN, async || match limiter.peek("a").await.unwrap().limit {
                limit if limit == burst => Ok(()),
                limit => Err(limit.to_string()),
            })
            .await;
        };
        set(5).await;
        assert_eq!((used("a").await, used("b").await), ((5, 0), (2, 1)));
        limiter.try_acquire_n("a", 3).await.unwrap();
        set(6).await;
        assert_eq!(used("a").await, (6, 3));
        file.replace("# none\n");
        in_force(registry, &[]).await;
        assert_eq!((used("a").await, used("b").await), ((2, 1), (2, 1)));
    })
    .await;
}

#[tokio::test]
async fn calls_take_no_holds_under_off() {
    let text = "[\"keys.held\".keys.off]\noff = true\n[\"keys.held\".keys.a]\nmax = 2\n[\"keys.holds\".keys.off]\noff = true\n";
    on_each_registry(text, async |registry, _| {
        let limiter = registry.limiter("keys.holds", ConcurrencyLimit::new(1)).unwrap();
        let _held = [limiter.try_acquire("off").await.unwrap(), limiter.try_acquire("off").await.unwrap()];
        assert_eq!(limiter.peek("off").await.unwrap().remaining, 1);
        registry
            .scope(async {
                for (key, inner) in [("off", true), ("a", true), ("other", false)] {
                    let calls = held(key, async {
                        assert_eq!(held(key, async {}).await.is_ok(), inner, "{key}");
                    });
                    Box::pin(calls).await.unwrap();
                }
            })
            .await;
    })
    .await;
}

#[tokio::test]
async fn invalid_overrides_of_keys_disarm_themselves_alone() {
    let log = LogCapture::default();
    let _subscriber = tracing::subscriber::set_default(log.clone());
    let file = Overrides::new(
        "[\"keys.window\".keys.a]\nlimit = 0\n[\"keys.window\".keys.b]\nlimit = 5\n[\"keys.window\".keys.c]\nburst = 5\n\
         [\"keys.method\".keys.a]\nlimit = 5\n[\"keys.shadow\".keys.a]\nblocked = true\n[\"keys.windw\".keys.a]\nlimit = 1\n\
         [\"keys.windw\".keys.b]\nlimit = 1\n",
    );
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let [valid] = &registry.overrides()[..] else { panic!("{:?}", registry.overrides()) };
    assert_eq!((valid.policy(), valid.key()), ("keys.window", &["b".to_owned()][..]));
    assert!(!format!("{valid:?}").contains("\"b\""), "{valid:?}");
    let reported = reported();
    for problem in [
        "`keys.window`, key `a`: `limit` is 0,",
        "`keys.window`, key `c`: `burst` is no argument of `count_limit`;",
        "`keys.method`, key `a`: the policy has no key, as all its calls share one counter; override it by its name alone",
        "`keys.shadow`, key `a`: `shadow` is in its attribute;",
        "no policy is named `keys.windw`; did you mean `keys.window`?",
    ] {
        assert_eq!(reported.matches(problem).count(), 1, "{problem}: {reported}");
        assert!(log.text().contains(problem), "{}", log.text());
    }
    registry
        .scope(async {
            for (key, calls) in [("a", 2), ("b", 5), ("c", 2)] {
                assert_eq!(admitted(async || window(key).await).await, calls, "{key}");
            }
            in_shadow("a").await.unwrap();
        })
        .await;
}

#[tokio::test]
async fn keys_beyond_the_bound_are_reported_and_ignored() {
    const MOST: usize = 10_000;
    let text: String = (0..MOST + 2).map(|i| format!("[\"keys.window\".keys.t{i}]\nlimit = 3\n")).collect();
    let file = Overrides::new(&(text + "[\"keys.bucket\"]\nburst = 5\n"));
    let registry = Registry::builder().overrides(&file.0).in_memory();
    assert_eq!(registry.overrides().len(), MOST + 1);
    let problem = "10002 keys have overrides, and at most 10000 may have; the last 2 are ignored, from `keys.window`, key `t10000` on";
    assert!(reported().contains(problem), "{}", reported());
    registry
        .scope(async {
            for (key, calls) in [("t0", 3), ("t9999", 3), ("t10000", 2), ("t10001", 2), ("other", 2)] {
                assert_eq!(admitted(async || window(key).await).await, calls, "{key}");
            }
            assert_eq!(admitted(async || bucket("a").await).await, 5);
        })
        .await;
}

#[tokio::test]
async fn overrides_of_keys_end_by_themselves() {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs();
    let text = format!(
        "[\"keys.window\".keys.a]\nlimit = 5\nuntil = {}\n[\"keys.window\".keys.b]\nlimit = 5\nuntil = {now}\n[\"keys.window\".keys.c]\nlimit = 5\n",
        now + 4
    );
    let file = Overrides::new(&text);
    let registry = Registry::builder().overrides(&file.0).in_memory();
    let keys = || registry.overrides().iter().map(|it| it.key().concat()).collect::<String>();
    assert!(["ac", "c"].contains(&&*keys()), "{}", keys());
    until("the override has ended", WITHIN, async || if keys() == "c" { Ok(()) } else { Err(keys()) }).await;
    registry
        .scope(async {
            for (key, calls) in [("a", 2), ("b", 2), ("c", 5)] {
                assert_eq!(admitted(async || window(key).await).await, calls, "{key}");
            }
        })
        .await;
}

/// Two registries with other overrides decide the same functions, in turns.
#[tokio::test]
async fn registries_have_overrides_of_their_own() {
    let files = [3, 5].map(|limit| {
        Overrides::new(&format!(
            "[\"keys.window\".keys.a]\nlimit = {limit}\n[\"keys.window\".keys.only{limit}]\nlimit = 1\n"
        ))
    });
    let registries = files.each_ref().map(|file| Registry::builder().overrides(&file.0).in_memory());
    let mut admitted = [0; 2];
    for _ in 0..10 {
        for (registry, admitted) in registries.iter().zip(&mut admitted) {
            *admitted += usize::from(registry.scope(window("a")).await.is_ok());
        }
    }
    assert_eq!(admitted, [3, 5]);
    for (i, registry) in registries.iter().enumerate() {
        for (key, is_alone) in [("only3", i == 0), ("only5", i == 1)] {
            registry.scope(window(key)).await.unwrap();
            assert_eq!(registry.scope(window(key)).await.is_err(), is_alone, "{key} {i}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_share_overrides_of_keys_in_redis() {
    const TEXTS: [(&str, [usize; 2]); 4] = [
        ("[\"keys.limiter\".keys.a]\nlimit = 5\n", [5, 2]),
        ("[\"keys.limiter\".keys.a]\nblocked = true\n[\"keys.limiter\".keys.b]\nlimit = 7\n", [0, 7]),
        ("[\"keys.limiter\".keys.b]\nlimit = 3\n", [2, 3]),
        ("", [2, 2]),
    ];
    if let Some(child) = Child::from_env() {
        let registry = Registry::builder().deadline(LONG_DEADLINE).overrides_in_redis();
        let registry = registry.connect(&child.url).await.unwrap();
        let limiter = registry.limiter("keys.limiter", FixedWindow::new(2, DAY)).unwrap();
        let client = redis::Client::open(&*child.url).unwrap();
        let mut connection = client.get_multiplexed_async_connection().await.unwrap();
        for (version, (text, limits)) in TEXTS.into_iter().enumerate() {
            if child.barrier(&format!("write{version}"), PROCESSES).await == 0 {
                let fields = [("toml", text.to_owned()), ("version", version.to_string())];
                let () = redis::cmd("HSET")
                    .arg("rl:overrides")
                    .arg(&fields)
                    .query_async(&mut connection)
                    .await
                    .unwrap();
            }
            child.barrier(&format!("written{version}"), PROCESSES).await;
            until("the limits are in force", WITHIN, async || {
                let found = [limiter.peek("a").await.unwrap().limit, limiter.peek("b").await.unwrap().limit];
                if found == limits.map(|limit| limit as u64) { Ok(()) } else { Err(format!("{found:?}")) }
            })
            .await;
        }
        return child.report(Vec::<String>::new());
    }
    let server = Server::start();
    processes::run(&server, PROCESSES, module_path!(), "processes_share_overrides_of_keys_in_redis").await;
}

#[tokio::test]
async fn keys_are_found_by_more_limiters_than_are_hashed() {
    let file = Overrides::new("[\"keys.many\".keys.a]\nlimit = 5\n");
    let server = Server::shared();
    let builder = || Registry::builder().overrides(&file.0);
    let registries = [
        builder().in_memory(),
        builder().namespace(namespace()).deadline(LONG_DEADLINE).connect_lazy(&server.url()).unwrap(),
    ];
    for registry in registries {
        for seconds in 1..=40 {
            let policy = FixedWindow::new(2, DAY + Duration::from_secs(seconds));
            let limiter = registry
                .limiter("keys.many", FixedWindow::new(2, DAY))
                .unwrap()
                .with_numbers(policy)
                .unwrap();
            assert_eq!(limiter.peek("a").await.unwrap().limit, 5, "{seconds}");
            assert_eq!(limiter.peek("b").await.unwrap().limit, 2, "{seconds}");
        }
    }
}
