//! Refusals that are repeated in process, beside what Redis itself says.

use std::time::Duration;

use ratelimits::error::Limited;
use ratelimits::{
    DecidedBy, Error, FixedWindow, LeakyBucket, Limiter, Policy, Rate, Registry, SlidingWindow, TokenBucket,
    count_limit, funnel_limit, rate_limit, window_limit,
};

use crate::support::registries::{LONG_DEADLINE, namespace};
use crate::support::server::Server;

const DAY: Duration = Duration::from_secs(86_400);

/// A denial that ends before its time, on a busy machine, is asked for again. No test takes that long this often.
const ATTEMPTS: usize = 20;

struct Fixture {
    server: Server,
    namespace: String,
}

impl Fixture {
    fn start() -> Self {
        Fixture { server: Server::start(), namespace: namespace() }
    }

    /// A registry that has not asked for anything yet.
    fn registry(&self, local_denials: bool) -> Registry {
        let builder = Registry::builder().namespace(&*self.namespace).deadline(LONG_DEADLINE);
        builder.local_denials(local_denials).connect_lazy(&self.server.url()).unwrap()
    }

    /// Makes calls until one is not sent. Returns the refusal by Redis before it, and its own.
    async fn refusals(&self, call: impl AsyncFn(&Registry) -> Result<(), Error>) -> (Limited, Limited) {
        for _ in 0..ATTEMPTS {
            let registry = self.registry(true);
            let refused = async || match call(&registry).await {
                Err(Error::Limited(limited)) => limited,
                other => panic!("{other:?}"),
            };
            let (first, before) = (refused().await, self.server.script_calls().await);
            let second = refused().await;
            if self.server.script_calls().await == before {
                return (first, second);
            }
        }
        panic!("every call was sent");
    }
}

/// One policy of each kind, with four permits that take days to come back.
fn policies() -> [Policy; 9] {
    let rate = Rate::new(4, 4 * DAY);
    [
        TokenBucket::new(rate).burst(4).into(),
        TokenBucket::new(rate).burst(4).adjustable().into(),
        TokenBucket::new(rate).interval_refill().burst(4).into(),
        TokenBucket::new(rate).interval_refill().burst(4).adjustable().into(),
        LeakyBucket::new(4, rate).into(),
        LeakyBucket::new(3, rate).queue().into(),
        FixedWindow::new(4, DAY).into(),
        SlidingWindow::new(4, DAY).into(),
        SlidingWindow::new(4, DAY).precision(DAY / 24).into(),
    ]
}

#[tokio::test]
async fn denials_say_what_redis_says() {
    let fixture = Fixture::start();
    for (i, policy) in policies().into_iter().enumerate() {
        let name = i.to_string();
        let asking = fixture.registry(false).limiter(&name, policy).unwrap();
        // A call that does not wait gets the first slot of a queue alone.
        let charged = if i == 5 { 1 } else { 3 };
        asking.try_acquire_n("a", charged).await.unwrap();
        let (by_redis, denied) = fixture
            .refusals(async |registry| registry.limiter(&name, policy)?.try_acquire_n("a", 2).await.map(drop))
            .await;
        let Err(Error::Limited(later)) = asking.try_acquire_n("a", 2).await else { panic!("{policy:?}") };
        let numbers = |limited: &Limited| {
            let decision = limited.decision();
            assert_eq!(decision.source, DecidedBy::Redis);
            (limited.policy().to_owned(), limited.algorithm(), decision.limit, decision.remaining)
        };
        assert_eq!(numbers(&denied), numbers(&by_redis), "{policy:?}");
        assert_eq!(numbers(&denied), numbers(&later), "{policy:?}");
        let times = |limited: &Limited| {
            let decision = limited.decision();
            [decision.retry_after.unwrap(), decision.reset_after]
        };
        for i in [0, 1] {
            let [first, denied, later] = [&by_redis, &denied, &later].map(|limited| times(limited)[i]);
            assert!(first >= denied && denied >= later, "{policy:?}: {first:?} {denied:?} {later:?}");
        }
    }
}

#[tokio::test]
async fn permits_that_are_given_back_are_admitted_at_once() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    for (i, policy) in policies().into_iter().enumerate().filter(|(i, _)| *i != 5) {
        let limiter = registry.limiter(&i.to_string(), policy).unwrap();
        let mut decision = limiter.try_acquire_n("a", 4).await.unwrap();
        for path in 0..3 {
            assert!(limiter.try_acquire_n("a", 4).await.unwrap_err().is_limited());
            match path {
                0 => decision.refund().await.unwrap(),
                1 => limiter.refund("a", 4).await.unwrap(),
                _ => _ = limiter.reset("a").await.unwrap(),
            }
            decision = limiter.try_acquire_n("a", 4).await.unwrap();
        }
    }
}

/// Never charged in the end. Its limiter has the same state.
#[count_limit(2, "1d", name = "denials.refunded", key = user, charge_when = |_| false)]
async fn refunded(user: &str, limiter: &Limiter) -> Result<(), Error> {
    limiter.try_acquire_n(user, 2).await.map(drop)
}

#[tokio::test]
async fn refunds_by_output_end_denials() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let limiter = registry.limiter("denials.refunded", FixedWindow::new(2, DAY)).unwrap();
    assert!(registry.scope(refunded("ann", &limiter)).await.unwrap_err().is_limited());
    limiter.try_acquire_n("ann", 2).await.unwrap();
}

#[tokio::test]
async fn calls_that_may_be_refunded_always_ask() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let limiter = registry.limiter("denials.refunded", FixedWindow::new(2, DAY)).unwrap();
    limiter.try_acquire_n("bob", 2).await.unwrap();
    limiter.try_acquire("bob").await.unwrap_err();
    let before = fixture.server.script_calls().await;
    registry.scope(refunded("bob", &limiter)).await.unwrap_err();
    assert_eq!(fixture.server.script_calls().await, before + 1);
}

#[tokio::test]
async fn free_charges_are_not_denied() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let [empty, full, open] =
        ["empty", "full", "open"].map(|name| registry.limiter(name, FixedWindow::new(1, DAY)).unwrap());
    empty.try_acquire(()).await.unwrap();
    full.try_acquire(()).await.unwrap();
    let beside =
        async |other: &Limiter| registry.try_acquire_all([empty.charge_n((), 0), other.charge(())]).await;
    assert!(beside(&full).await.unwrap_err().is_limited());
    beside(&open).await.unwrap();
}

/// Takes leases of a bucket by its own rate.
#[rate_limit(rate = rate, burst = 5, name = "denials.leased", lease = 2, key_type = METHOD)]
async fn leased(rate: Rate) -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn leases_with_other_numbers_end_denials() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let bucket = TokenBucket::new(Rate::new(1, DAY)).burst(5).adjustable();
    let slow = registry.limiter("denials.leased", bucket).unwrap();
    slow.try_acquire_n((), 3).await.unwrap();
    assert!(slow.try_acquire_n((), 3).await.unwrap_err().is_limited());
    registry.scope(leased(Rate::per_second(1000))).await.unwrap();
    let before = fixture.server.script_calls().await;
    drop(slow.try_acquire_n((), 3).await);
    assert_eq!(fixture.server.script_calls().await, before + 1);
}

/// A faster rate changes how the bucket refills for all.
#[tokio::test]
async fn calls_with_other_numbers_end_denials() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let limiter = |rate| registry.limiter("a", TokenBucket::new(rate).burst(5).adjustable()).unwrap();
    let (slow, fast) = (limiter(Rate::new(1, DAY)), limiter(Rate::per_second(1000)));
    slow.try_acquire_n("a", 4).await.unwrap();
    assert!(slow.try_acquire_n("a", 2).await.unwrap_err().is_limited());
    fast.try_acquire("a").await.unwrap();
    let before = fixture.server.script_calls().await;
    drop(slow.try_acquire_n("a", 2).await);
    assert_eq!(fixture.server.script_calls().await, before + 1);
}

#[count_limit(2, "1d", name = "denials.user", key = user, fallback = |_| "user")]
#[rate_limit(rate = "1/1d", burst = 5, name = "denials.all", fallback = |_| "all")]
async fn stack(user: u8) -> &'static str {
    let _ = user;
    "body"
}

#[tokio::test]
async fn denied_stacks_call_the_fallback_of_the_policy_that_refused() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    registry
        .scope(async {
            for outputs in [(1, ["body", "body", "user", "user"]), (2, ["body", "body", "user", "user"])] {
                for output in outputs.1 {
                    assert_eq!(stack(outputs.0).await, output);
                }
            }
            for output in ["body", "all", "all"] {
                assert_eq!(stack(3).await, output);
            }
        })
        .await;
}

#[rate_limit(rate = "1/1d", burst = 5, name = "denials.one", key = user)]
async fn one_policy(user: u8) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[rate_limit(rate = "1/1d", burst = burst, name = "denials.computed")]
async fn computed(burst: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(5, "1d", name = "denials.two", key = user)]
#[funnel_limit(50, "1/1d", name = "denials.both")]
async fn two_policies(user: u8) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[tokio::test]
async fn attributes_are_denied() {
    let fixture = Fixture::start();
    let asking = fixture.registry(false);
    for _ in 0..5 {
        let admitted =
            asking.scope(async { (one_policy(1).await, computed(5).await, two_policies(1).await) });
        let (Ok(()), Ok(()), Ok(())) = admitted.await else { panic!("a call was refused") };
    }
    for (name, policies) in [("denials.one", 1), ("denials.computed", 1), ("denials.two", 1)] {
        let call = async |registry: &Registry| match name {
            "denials.one" => registry.scope(one_policy(1)).await,
            "denials.computed" => registry.scope(computed(5)).await,
            _ => registry.scope(two_policies(1)).await,
        };
        let (by_redis, denied) = fixture.refusals(call).await;
        assert_eq!((by_redis.policy(), denied.policy()), (name, name));
        assert_eq!(denied.decision().policies().len(), policies);
    }
    let other_user = asking.scope(async { (one_policy(2).await, computed(6).await, two_policies(2).await) });
    let (Ok(()), Ok(()), Ok(())) = other_user.await else { panic!("another key or burst was refused") };
}

#[count_limit(1, "1d", name = "denials.required")]
#[window_limit(100, "1d", name = "denials.shadow", shadow)]
async fn shadowed() -> Result<(), Error> {
    Ok(())
}

#[count_limit(1, "1d", name = "denials.shadow.alone", shadow)]
async fn in_shadow() -> Result<(), Error> {
    Ok(())
}

#[tokio::test]
async fn calls_with_a_shadow_always_ask() {
    let fixture = Fixture::start();
    let registry = fixture.registry(true);
    let limiter = registry.limiter("denials.shadow.alone", FixedWindow::new(1, DAY)).unwrap();
    limiter.try_acquire(()).await.unwrap();
    assert!(limiter.try_acquire(()).await.unwrap_err().is_limited());
    let before = fixture.server.script_calls().await;
    registry.scope(in_shadow()).await.unwrap();
    assert!(fixture.server.script_calls().await > before);

    registry.scope(shadowed()).await.unwrap();
    let before = fixture.server.script_calls().await;
    for calls in 1..=3 {
        registry.scope(shadowed()).await.unwrap_err();
        assert_eq!(fixture.server.script_calls().await, before + calls);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_threads_share_the_denials_of_a_key() {
    let fixture = Fixture::start();
    let limiter = fixture.registry(true).limiter("a", FixedWindow::new(1, DAY)).unwrap();
    limiter.try_acquire("a").await.unwrap();
    let before = fixture.server.script_calls().await;
    let tasks = (0..16).map(|_| {
        let limiter = limiter.clone();
        tokio::spawn(async move {
            for _ in 0..1000 {
                assert!(limiter.try_acquire("a").await.unwrap_err().is_limited());
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let calls = fixture.server.script_calls().await - before;
    assert!(calls < 4000, "{calls} of 16000 calls were sent");
}

/// It needs neither a runtime nor a connection.
#[test]
fn blocking_calls_are_denied() {
    let server = Server::start();
    let registry = Registry::builder().deadline(LONG_DEADLINE).connect_lazy(&server.url()).unwrap();
    let limiter = registry.limiter("a", FixedWindow::new(1, DAY)).unwrap();
    limiter.blocking_try_acquire("a").unwrap();
    for _ in 0..3 {
        assert!(limiter.blocking_try_acquire("a").unwrap_err().is_limited());
    }
}
