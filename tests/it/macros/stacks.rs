//! Several attributes on one function, on both stores.

use std::time::Duration;

use ratelimits::{
    Algorithm, Error, FixedWindow, Limiter, OnStoreError, Registry, SlidingWindow, TokenBucket, count_limit,
    funnel_limit, rate_limit, window_limit,
};
use redis::FromRedisValue;

use super::{User, isolated};
use crate::support::log_capture::LogCapture;
use crate::support::registries::{LONG_DEADLINE, on, on_each_registry};
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);
const FUNCTION: &str = "it::macros::stacks::send";

/// Each policy refuses some of the calls below.
#[rate_limit("40/day", 40, name = "stacks.bucket", key = user)]
#[window_limit(30, "1d", name = "stacks.window", key = (room, user % 2))]
#[count_limit(150, "1d", name = "stacks.count")]
async fn send(user: u64, room: u64) -> Result<(), Error> {
    tokio::task::yield_now().await;
    Ok(())
}

async fn query<T: FromRedisValue>(server: &Server, command: &[&str]) -> T {
    redis::cmd(command[0]).arg(&command[1..]).query_async(&mut server.connect().await).await.unwrap()
}

async fn remaining<M>(limiter: Limiter, key: impl ratelimits::IntoKey<M>) -> u64 {
    limiter.function(FUNCTION).peek(key).await.unwrap().remaining
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refused_calls_are_not_charged() {
    on_each_registry(async |registry, _| {
        let mut tasks = tokio::task::JoinSet::new();
        for task in 0..64 {
            let registry = registry.clone();
            tasks.spawn(async move {
                let calls = async {
                    let mut admitted = Vec::new();
                    for call in 0..10 {
                        let (user, room) = ((task + call) % 6, (task * 7 + call) % 4);
                        match send(user, room).await {
                            Ok(()) => admitted.push((user, room)),
                            Err(error) => assert!(error.is_limited(), "{error}"),
                        }
                    }
                    admitted
                };
                registry.scope(calls).await
            });
        }
        let admitted = tasks.join_all().await.concat();
        assert!(admitted.len() > 100, "{}", admitted.len());

        let charged =
            |of: &dyn Fn(&(u64, u64)) -> bool| admitted.iter().filter(|call| of(call)).count() as u64;
        let count = registry.limiter("stacks.count", FixedWindow::new(150, DAY)).unwrap();
        assert_eq!(remaining(count, ()).await, 150 - charged(&|_| true));
        for user in 0..6 {
            let bucket = TokenBucket::new("40/day".parse().unwrap()).burst(40);
            let bucket = registry.limiter("stacks.bucket", bucket).unwrap();
            assert_eq!(remaining(bucket, user).await, 40 - charged(&|call| call.0 == user), "user {user}");
        }
        for room in 0..4 {
            for half in 0..2 {
                let window = registry.limiter("stacks.window", SlidingWindow::new(30, DAY)).unwrap();
                let charged = charged(&|call| (call.1, call.0 % 2) == (room, half));
                assert_eq!(remaining(window, (room, half)).await, 30 - charged, "room {room}, half {half}");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn stack_takes_one_script_call() {
    let server = Server::start();
    let builder = Registry::builder().deadline(LONG_DEADLINE).local_denials(false);
    let registry = builder.connect_lazy(&server.url()).unwrap();
    registry.scope(send(1, 1)).await.unwrap();
    let () = query(&server, &["CONFIG", "RESETSTAT"]).await;

    let mut limited = 0;
    for _ in 0..50 {
        limited += u64::from(registry.scope(send(1, 1)).await.is_err());
    }
    assert_eq!(limited, 50 - 29);
    let stats: String = query(&server, &["INFO", "commandstats"]).await;
    let calls = |command: &str| stats.lines().find(|line| line.starts_with(&format!("cmdstat_{command}:")));
    assert!(calls("evalsha").is_some_and(|line| line.contains("calls=50,")), "{stats}");
    assert_eq!(calls("eval"), None);
}

#[count_limit(a, "1d", fallback = |_| "a")]
#[window_limit(b, "2d", fallback = async |error| if error.is_limited() { "b" } else { "b, invalid" })]
#[inline]
#[count_limit(c, "3d", fallback = last)]
async fn with_fallbacks(a: u64, b: u64, c: u64) -> &'static str {
    "body"
}

fn last() -> &'static str {
    "c"
}

#[test]
fn reported_policy_picks_the_fallback() {
    isolated(async {
        assert_eq!(with_fallbacks(5, 5, 5).await, "body");
        for (limits, output) in [
            ((1, 5, 5), "a"),
            ((5, 1, 5), "b"),
            ((5, 5, 1), "c"),
            ((1, 1, 5), "b"),
            ((1, 1, 1), "c"),
            ((5, 0, 1), "b, invalid"),
            ((5, 0, 0), "b, invalid"),
            ((5, 5, 5), "body"),
        ] {
            let (a, b, c) = limits;
            assert_eq!(with_fallbacks(a, b, c).await, output, "{limits:?}");
        }
    });
}

#[count_limit(4, "1d", name = "stacks.few.count", key = id, cost = cost)]
#[rate_limit("3/day", 3, name = "stacks.few.bucket", key = id, cost = cost)]
#[funnel_limit(capacity = 5, drain = "1d", name = "stacks.few.funnel", key = id, cost = cost)]
async fn few(id: u64, cost: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(4, "1d", key = id, cost = cost, fallback = |_| "stacks.few.count")]
#[rate_limit("3/day", 3, key = id, cost = cost, fallback = |_| "stacks.few.bucket")]
#[funnel_limit(capacity = 5, drain = "1d", key = id, cost = cost, fallback = |_| "stacks.few.funnel")]
async fn few_with_fallbacks(id: u64, cost: u64) -> &'static str {
    "body"
}

/// What each policy says once three permits are taken: the policy that refuses the call for the longest time, and then whether each
/// admits it.
const FEW: [(u64, &str, [bool; 3]); 4] = [
    (1, "stacks.few.bucket", [true, false, true]),
    (2, "stacks.few.count", [false, false, true]),
    (4, "stacks.few.bucket", [false, false, false]),
    (6, "stacks.few.funnel", [false, false, false]),
];

async fn refused_stack_says_what_each_policy_says(registry: &Registry) {
    registry.scope(few(1, 3)).await.unwrap();
    assert_eq!(registry.scope(few_with_fallbacks(1, 3)).await, "body");
    for (cost, reported, admitted) in FEW {
        let Err(Error::Limited(limited)) = registry.scope(few(1, cost)).await else { panic!("{cost}") };
        assert_eq!((limited.policy(), limited.decision().waited), (reported, Duration::ZERO), "{cost}");
        let policies = limited.decision().policies();
        let said = policies
            .iter()
            .map(|policy| (&*policy.policy, policy.limit, policy.remaining))
            .collect::<Vec<_>>();
        assert_eq!(
            said,
            [("stacks.few.count", 4, 1), ("stacks.few.bucket", 3, 0), ("stacks.few.funnel", 5, 2)]
        );
        let admits: Vec<_> = policies.iter().map(|policy| policy.admitted).collect();
        assert_eq!(admits, admitted, "{cost}");
        let longest = policies.iter().filter(|policy| !policy.admitted).map(|policy| policy.retry_after);
        let is_never = cost > 3;
        assert_eq!(limited.decision().retry_after, longest.max().flatten().filter(|_| !is_never), "{cost}");
        assert_eq!(registry.scope(few_with_fallbacks(1, cost)).await, reported, "{cost}");
    }
}

#[tokio::test]
async fn refused_stacks_say_the_same_on_each_store_and_to_observers() {
    on_each_registry(async |registry, _| refused_stack_says_what_each_policy_says(&registry).await).await;
    let observed = Registry::builder().observer(|_| {}).in_memory();
    refused_stack_says_what_each_policy_says(&observed).await;
}

#[count_limit(5, "1d", key = id, shadow, fallback = |_| unreachable!("shadow policies never refuse"))]
#[rate_limit("1/day", key = "<id>")]
#[count_limit(3, "1d", key = id, name = "stacks.some_fallbacks", fallback = |_| Ok("own"))]
#[count_limit(2, "1h", key = id)]
async fn some_fallbacks(id: u64) -> Result<&'static str, Error> {
    Ok("body")
}

#[tokio::test]
async fn policy_without_fallback_returns_an_error() {
    on_each_registry(async |registry, _| {
        registry
            .limiter("stacks.some_fallbacks", FixedWindow::new(3, DAY))
            .unwrap()
            .try_acquire_n(1, 3)
            .await
            .unwrap();
        assert_eq!(registry.scope(some_fallbacks(1)).await.unwrap(), "own");
        assert_eq!(registry.scope(some_fallbacks(2)).await.unwrap(), "body");
        let Err(Error::Limited(limited)) = registry.scope(some_fallbacks(2)).await else {
            panic!("not limited")
        };
        assert_eq!(limited.policy(), "it::macros::stacks::some_fallbacks");
        let policies = limited.decision().policies().iter();
        let policies: Vec<_> = policies
            .map(|policy| (&*policy.policy, policy.algorithm, policy.shadow, policy.admitted))
            .collect();
        assert_eq!(
            policies,
            [
                ("it::macros::stacks::some_fallbacks#3", Algorithm::FixedWindow, true, true),
                ("it::macros::stacks::some_fallbacks", Algorithm::TokenBucket, false, false),
                ("stacks.some_fallbacks", Algorithm::FixedWindow, false, true),
                ("it::macros::stacks::some_fallbacks#2", Algorithm::FixedWindow, false, true),
            ]
        );
    })
    .await;
}

/// Redis is down and every call is denied.
fn denying() -> Registry {
    Registry::builder().on_store_error(OnStoreError::Deny).connect_lazy("redis://127.0.0.1:1").unwrap()
}

#[tokio::test]
async fn store_failure_calls_the_first_fallback() {
    let denying = denying();
    assert_eq!(denying.scope(some_fallbacks(1)).await.unwrap(), "own");
    assert_eq!(denying.scope(with_fallbacks(5, 5, 5)).await, "a");
    assert!(matches!(denying.scope(send(1, 1)).await, Err(Error::Store(_))));
}

#[count_limit(5, "1d", key = u32::try_from(user.id).unwrap_or(0))]
#[count_limit(9, "1h", key = "<u32::try_from(user.id).unwrap_or(0)>")]
async fn spellings(user: &User) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[tokio::test]
async fn stacked_keys_share_a_hash_tag() {
    let server = Server::start();
    let registry = on(&server);
    registry
        .scope(async {
            send(1, 1).await.unwrap();
            some_fallbacks(1).await.unwrap();
            spellings(&User { id: 1, daily: 1 }).await.unwrap();
        })
        .await;
    let keys: Vec<String> = query(&server, &["KEYS", "*"]).await;
    let tags = |of: &str| -> Vec<_> {
        let of = keys.iter().filter(|key| key.contains(of));
        of.map(|key| key.split(['{', '}']).nth(1).unwrap()).collect()
    };
    let own: Vec<_> = ["stacks.bucket", "stacks.window", "stacks.count"].map(&tags).concat();
    assert_eq!(own, ["it/macros/stacks/send"; 3], "{keys:?}");
    // Also if one key is an expression and the other a template.
    let by_key = [tags("some_fallbacks"), tags("spellings")].concat();
    assert_eq!(by_key.len(), 4 + 2, "{keys:?}");
    assert!(by_key.iter().all(|tag| *tag == by_key[0] && !tag.contains('/')), "{keys:?}");
}

const FREE: u64 = 0;

#[count_limit(1, "9d", skip_when = skipped, fallback = |_| "skipped")]
#[count_limit(5, "9d", cost = FREE, fallback = |_| "free")]
#[count_limit(1, "8d", shadow, fallback = |_| "shadow")]
#[count_limit(limit = limit, period = "1d", fallback = |_| "counted")]
async fn last_of_four(skipped: bool, limit: u8) -> &'static str {
    "body"
}

#[test]
fn skipped_free_and_shadow_policies_never_refuse() {
    isolated(async {
        for (skipped, limit, output) in [
            (true, 1, "body"),
            (true, 1, "counted"),
            (false, 0, "counted"),
            (false, 5, "body"),
            (false, 5, "skipped"),
            (false, 1, "skipped"),
        ] {
            assert_eq!(last_of_four(skipped, limit).await, output, "{skipped} {limit}");
        }
    });
}

/// Keeps its fallback, for when `shadow` is removed.
#[count_limit(1, "1d", shadow, fallback = unused)]
async fn on_trial() -> u8 {
    1
}

fn unused() -> u8 {
    0
}

#[count_limit(1, "1d", shadow, key = (user, id))]
#[count_limit(limit = limit, period = "1d", shadow)]
#[count_limit(9, "1d", skip_when = skipped)]
async fn two_shadows(user: Option<u8>, id: u8, limit: u8, skipped: bool) -> Result<(), Error> {
    let _ = (user, id, limit);
    Ok(())
}

#[tokio::test]
async fn shadow_policies_log_and_never_refuse() {
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    on_each_registry(async |registry, _| {
        let calls = async {
            assert_eq!((on_trial().await, on_trial().await), (1, 1));
            // One has no key, the other an invalid limit.
            two_shadows(None, 1, 0, false).await.unwrap();
            two_shadows(Some(1), 1, 1, true).await.unwrap();
        };
        registry.scope(calls).await;
        let window = registry.limiter("it::macros::stacks::two_shadows#2", FixedWindow::new(1, DAY)).unwrap();
        let unknown = window.function("it::macros::stacks::two_shadows").peek(1).await.unwrap();
        assert_eq!(unknown.remaining, 1, "a missing key has no counter");
    })
    .await;
    let denying = denying();
    denying.scope(two_shadows(Some(1), 1, 1, true)).await.unwrap();
    denying.scope(two_shadows(Some(1), 1, 1, false)).await.unwrap_err();

    let (limited, undecided) =
        ("shadow policy would have limited calls", "shadow policy could not be evaluated");
    let (first, second) = ("it::macros::stacks::two_shadows#2", "it::macros::stacks::two_shadows#3");
    let outage = "store unavailable; applying `on_store_error`";
    let trial = "it::macros::stacks::on_trial";
    let (in_process, in_redis) = ("limits are decided in this process", "limits are decided in Redis");
    let expected = [
        ("", in_process),
        (trial, limited),
        (first, undecided),
        (second, undecided),
        ("", in_redis),
        ("", outage),
    ];
    let mut events: Vec<(String, String)> = Vec::new();
    for event in log.events() {
        // Events of a shadow policy are logged once a second.
        if event.1 != "call was refused" && !events.contains(&event) {
            events.push(event);
        }
    }
    let events: Vec<_> = events.iter().map(|(policy, message)| (policy.as_str(), message.as_str())).collect();
    assert_eq!(events, expected);
}

#[tokio::test]
async fn shadow_store_errors_are_not_logged_as_limited() {
    let server = Server::start();
    let registry = on(&server);
    registry.scope(on_trial()).await;
    let keys: Vec<String> = query(&server, &["KEYS", "*"]).await;
    let () = query(&server, &["SET", &keys[0], "not a state"]).await;
    let log = LogCapture::default();
    let _guard = tracing::subscriber::set_default(log.clone());
    assert_eq!(registry.scope(on_trial()).await, 1);
    let undecided = "shadow policy could not be evaluated";
    assert_eq!(log.events(), [("it::macros::stacks::on_trial".to_owned(), undecided.to_owned())]);
}

#[count_limit(1, "1d", name = "stacks.full")]
#[count_limit(1, "1d", name = "stacks.free", cost = FREE)]
async fn beside_a_free_policy() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn policies_without_cost_say_nothing() {
    on_each_registry(async |registry, _| {
        registry.scope(beside_a_free_policy()).await.unwrap();
        let refused = registry.scope(beside_a_free_policy()).await.unwrap_err();
        let Error::Limited(limited) = refused else { panic!("{refused}") };
        assert_eq!(limited.decision().policies().len(), 1);
    })
    .await;
}
