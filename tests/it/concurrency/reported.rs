//! Which of several policies is reported that refuse a call.

use std::time::Duration;

use ratelimits::{
    ConcurrencyLimit, Error, FixedWindow, OnStoreError, Rate, Registry, SlidingWindow, TokenBucket,
    concurrency_limit, count_limit,
};

use crate::support::registries::{LONG_DEADLINE, on_each_registry};
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

/// The name of the policy that is reported, if its call may ever be admitted, and whether it says when.
fn reported(error: Error) -> (String, bool, bool) {
    let (possible, known) = (!error.is_unsatisfiable(), error.retry_after().is_some());
    let Error::Limited(limited) = error else { panic!("{error:?}") };
    (limited.policy().to_owned(), possible, known)
}

/// What Redis has refused is not refused without asking it: what is remembered are only refusals of which it is known when they end.
fn registries(server: &Server) -> [Registry; 2] {
    let redis = Registry::builder().namespace("reported").deadline(LONG_DEADLINE).local_denials(false);
    let redis = redis.on_store_error(OnStoreError::Deny);
    [Registry::in_memory(), redis.connect_lazy(&server.url()).unwrap()]
}

#[tokio::test]
async fn longest_wait_is_reported_and_unknown_is_longer_than_any() {
    let server = Server::shared();
    for registry in registries(&server) {
        let held = registry.limiter("held", ConcurrencyLimit::new(2)).unwrap();
        let bucket = registry.limiter("bucket", TokenBucket::new(Rate::new(1, DAY)).burst(2)).unwrap();
        let window = registry.limiter("window", FixedWindow::new(2, DAY)).unwrap();
        let log = registry.limiter("log", SlidingWindow::new(2, 2 * DAY)).unwrap();
        let all = |cost| [&bucket, &held, &window, &log].map(|limiter| limiter.charge_n("a", cost));
        let _held = registry.try_acquire_all(all(2)).await.unwrap();
        for turn in 0..4 {
            let mut charges = all(1);
            charges.rotate_left(turn);
            let error = registry.try_acquire_all(charges).await.unwrap_err();
            assert_eq!(reported(error), ("held".into(), true, false));
            // What is never possible is longer still.
            let mut charges =
                [bucket.charge("a"), held.charge("a"), window.charge_n("a", 3), log.charge("a")];
            charges.rotate_left(turn);
            let error = registry.try_acquire_all(charges).await.unwrap_err();
            assert_eq!(reported(error), ("window".into(), false, false));
            let mut charges =
                [bucket.charge("a"), held.charge_n("a", 3), window.charge("a"), log.charge("a")];
            charges.rotate_left(turn);
            let error = registry.try_acquire_all(charges).await.unwrap_err();
            assert_eq!(reported(error), ("held".into(), false, false));
        }
        // Two alone, which are decided by another path in process.
        for (held_cost, window_cost, expected) in [
            (1, 1, ("held".into(), true, false)),
            (1, 3, ("window".into(), false, false)),
            (3, 1, ("held".into(), false, false)),
        ] {
            for is_first in [true, false] {
                let mut charges = [held.charge_n("a", held_cost), window.charge_n("a", window_cost)];
                if !is_first {
                    charges.reverse();
                }
                let error = registry.try_acquire_all(charges).await.unwrap_err();
                assert_eq!(reported(error), expected);
            }
        }
        // Without it, the longest of those that are known.
        let error = registry.try_acquire_all([window.charge("a"), log.charge("a"), held.charge("b")]).await;
        assert_eq!(reported(error.unwrap_err()), ("log".into(), true, true));
        assert_eq!(held.peek("b").await.unwrap().remaining, 2);
    }
}

#[tokio::test]
async fn fewest_permits_left_are_reported() {
    on_each_registry(async |registry, _| {
        let held = registry.limiter("held", ConcurrencyLimit::new(3)).unwrap();
        let window = registry.limiter("window", FixedWindow::new(100, DAY)).unwrap();
        let both = || registry.try_acquire_all([window.charge("a"), held.charge("a")]);
        let first = both().await.unwrap();
        assert_eq!((first.limit, first.remaining, first.reset_after), (3, 2, Duration::ZERO));
        let left: Vec<u64> = first.policies().iter().map(|policy| policy.remaining).collect();
        assert_eq!(left, [99, 2]);
    })
    .await;
}

#[concurrency_limit(1, key = id, fallback = |_| Ok("held"))]
#[count_limit(2, "1d", key = id, fallback = |_| Ok("counted"))]
async fn with_fallbacks(id: &str, inner: bool) -> Result<&'static str, Error> {
    // Another call of the same key while this one runs.
    if inner { Box::pin(with_fallbacks(id, false)).await } else { Ok("ran") }
}

#[tokio::test]
async fn fallback_of_the_reported_policy_is_called() {
    on_each_registry(async |registry, _| {
        let call = |inner| registry.scope(with_fallbacks("a", inner));
        assert_eq!(call(true).await.unwrap(), "held");
        until_free(&registry).await;
        assert_eq!(call(true).await.unwrap(), "held");
        until_free(&registry).await;
        assert_eq!(call(true).await.unwrap(), "counted");
    })
    .await;
}

/// Waits until no call holds a permit.
async fn until_free(registry: &Registry) {
    let name = concat!(module_path!(), "::with_fallbacks");
    let limiter = registry.policy(name).unwrap().limiter().unwrap();
    super::until_remain(&limiter, "a", 1).await;
}
