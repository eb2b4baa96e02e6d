//! Calls on a known key do not allocate in process, and registries and long keys need little memory. A separate binary, as it
//! replaces the allocator.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use ratelimits::observe::MostLimited;
use ratelimits::{
    ConcurrencyLimit, Decision, Error, FixedWindow, Rate, Registry, TokenBucket, concurrency_limit,
    count_limit, funnel_limit, rate_limit, window_limit,
};

const DAY: Duration = Duration::from_secs(86_400);

#[rate_limit(1000, 1_000_000, key = (user, room))]
async fn token_bucket(user: &str, room: u64) -> Result<(), Error> {
    let _ = room;
    Ok(())
}

#[rate_limit("1000/h", 1_000_000, refill = interval, key = "<user>:room")]
async fn interval_bucket(user: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(max, "1d", fallback = |_| 0, skip_when = user == "admin")]
async fn fixed_window(user: &str, max: u32) -> usize {
    user.len()
}

#[funnel_limit(1_000_000, drain = "1h", name = "meter", cost = 2, fallback = none, pass_args)]
async fn leaky_bucket(user: String) -> Option<String> {
    Some(user)
}

fn none(_: String) -> Option<String> {
    None
}

#[rate_limit(1000, 1_000_000, borrow, timeout = "1s", key = user)]
async fn borrowing_bucket(user: u64) -> Result<(), Error> {
    Ok(())
}

#[window_limit(1_000_000, "1d", precision = "1h", key = user)]
async fn sliding_window(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(1000, 1_000_000, key = user)]
#[count_limit(1_000_000, "1d", key = user)]
#[funnel_limit(1_000_000, drain = "1h")]
async fn stacked(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(1000, 1_000_000, key = user)]
#[count_limit(1_000_000, "1d", key = user)]
#[window_limit(1_000_000, "1d", precision = "1h", key = user)]
#[funnel_limit(1_000_000, drain = "1h")]
async fn stacked_with_a_sliding_window(user: u64) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1_000_000, "1d", shadow)]
async fn in_shadow() {}

#[concurrency_limit(3, key = (user, room), cost = 2)]
async fn held(user: &str, room: u64) -> Result<(), Error> {
    let _ = room;
    Ok(())
}

#[concurrency_limit(most, key = user, timeout = "1s")]
async fn held_by_a_computed_number(user: u64, most: u32) -> Result<(), Error> {
    Ok(())
}

#[concurrency_limit(3, shadow)]
async fn held_in_shadow() {}

#[rate_limit(1000, 1_000_000, key = user)]
#[concurrency_limit(3, key = user)]
async fn held_beside_a_bucket(user: u64) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(1000, 1_000_000, key = user)]
#[concurrency_limit(3, key = user)]
#[count_limit(1_000_000, "1d", key = user)]
async fn held_beside_two(user: u64) -> Result<(), Error> {
    Ok(())
}

// Known without a call.
#[cfg(feature = "overrides")]
#[allow(dead_code)]
#[rate_limit("1/d", 1, name = "overridden")]
async fn overridden() -> Result<(), Error> {
    Ok(())
}

#[test]
fn admitted_calls_allocate_nothing() {
    macro_rules! allocate_nothing {
        ($($call:expr),* $(,)?) => {$(
            let first = allocation_counter::measure(|| _ = now($call));
            assert!(first.count_total > 0, "{}: the first call of a key allocates its state", stringify!($call));
            for _ in 0..100 {
                let later = allocation_counter::measure(|| _ = now($call));
                assert_eq!(later.count_total, 0, "{}", stringify!($call));
            }
        )*};
    }
    let user = std::cell::Cell::new(String::new());
    let registry = Registry::in_memory();
    now(registry.scope(async {
        allocate_nothing![
            token_bucket("ann", 7),
            interval_bucket("ann"),
            fixed_window("ann", 1000),
            leaky_bucket(user.take()),
            borrowing_bucket(7),
            sliding_window(7),
            stacked(7),
            stacked_with_a_sliding_window(7),
            in_shadow(),
            held("ann", 7),
            held_by_a_computed_number(7, 3),
            held_in_shadow(),
            held_beside_a_bucket(7),
            held_beside_two(7),
        ];
    }));
}

#[count_limit(1, "1d", key = user)]
async fn once_a_day(user: u64) -> Result<(), Error> {
    let _ = user;
    Ok(())
}

#[concurrency_limit(1, key = user, bind = decision)]
async fn one_at_a_time(user: &str) -> Result<Decision, Error> {
    Ok(decision)
}

fn hold(user: &str) -> Decision {
    now(one_at_a_time(user)).unwrap()
}

#[test]
fn refused_calls_allocate_nothing() {
    let registry = Registry::in_memory();
    let limiter = registry.limiter("rows", TokenBucket::new(Rate::new(1, DAY)).burst(2)).unwrap();
    now(registry.scope(async {
        let assert_limited = |result: Result<(), Error>, never: bool| {
            let error = result.unwrap_err();
            assert!(error.is_limited() && error.is_unsatisfiable() == never);
        };
        now(once_a_day(7)).unwrap();
        now(limiter.try_acquire_n("ann", 2)).unwrap();
        let exports = registry.limiter("exports", ConcurrencyLimit::new(2)).unwrap();
        let _held = (now(exports.try_acquire_n("ann", 2)).unwrap(), hold("ann"));
        // The refusal of a function that binds its decision, whose memory the thread keeps for the next one.
        let refused =
            allocation_counter::measure(|| assert_limited(now(one_at_a_time("ann")).map(drop), false));
        assert_eq!(refused.count_total, 1);
        for _ in 0..3 {
            let refused = allocation_counter::measure(|| assert_limited(now(once_a_day(7)), false));
            assert_eq!(refused.count_total, 0);
            let refused = allocation_counter::measure(|| {
                assert_limited(now(limiter.try_acquire("ann")).map(drop), false);
                assert_limited(now(limiter.try_acquire_n("ann", 3)).map(drop), true);
                assert_limited(now(exports.try_acquire("ann")).map(drop), false);
                assert_limited(now(exports.try_acquire_n("ann", 3)).map(drop), true);
                assert_limited(now(one_at_a_time("ann")).map(drop), false);
            });
            assert_eq!(refused.count_total, 0);
        }
    }));
}

#[test]
fn decisions_allocate_nothing_until_their_policies_are_read() {
    let registry = Registry::in_memory();
    let bucket = registry.limiter("bucket", TokenBucket::new(Rate::new(1, DAY)).burst(100)).unwrap();
    let window = registry.limiter("window", FixedWindow::new(100, DAY)).unwrap();
    let held = registry.limiter("held", ConcurrencyLimit::new(100)).unwrap();
    for (limiter, holds) in [(bucket, 0), (window, 0), (held, 1)] {
        let decide = || now(limiter.try_acquire("ann")).unwrap();
        // The key is new, and the first refund makes room for a state under the lock.
        drop(decide());
        now(decide().refund()).unwrap();
        let decided = allocation_counter::measure(|| drop(decide()));
        let refunded = allocation_counter::measure(|| now(decide().refund()).unwrap());
        // What a call holds is in a box, so that other decisions have nothing to drop.
        assert_eq!((decided.count_total, refunded.count_total), (holds, holds));
        let decision = decide();
        for allocations in [3 - holds, 0] {
            let read = allocation_counter::measure(|| assert_eq!(decision.policies().len(), 1));
            assert_eq!(read.count_total, allocations);
        }
    }
}

/// A process may have a registry for each tenant.
#[cfg(feature = "redis")]
#[test]
fn registry_on_a_server_in_use_needs_little_memory() {
    let mut registries = Vec::with_capacity(10);
    let mut connect = |tenant: &str| {
        let builder = Registry::builder().namespace(tenant);
        registries.push(builder.connect_lazy("redis://127.0.0.1:1").expect("the URL is valid"));
    };
    connect("first");
    for tenant in ["second", "third"] {
        let memory = allocation_counter::measure(|| connect(tenant));
        assert!(memory.bytes_current < 6144, "{memory:?}");
    }
}

/// Callers may choose the numbers of a limiter, whose policy an operator overrides.
#[cfg(feature = "overrides")]
#[test]
fn numbers_under_an_override_are_not_kept() {
    const PAIRS: u64 = 200_000;
    let path = std::env::temp_dir().join(format!("ratelimits-allocations-{}.toml", std::process::id()));
    std::fs::write(&path, "[\"overridden\"]\nburst = 100\n").unwrap();
    // As if it had not been written just now.
    let old = std::time::SystemTime::now() - Duration::from_secs(10);
    std::fs::File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    let registry = Registry::builder().overrides(&path).in_memory();
    let call = |permits| {
        let bucket = TokenBucket::new(Rate::new(permits, 10 * DAY)).burst(permits);
        let limiter = registry.limiter("overridden", bucket).unwrap();
        let decision = now(limiter.try_acquire("ann")).unwrap();
        assert_eq!(decision.limit, 100);
        now(decision.refund()).unwrap();
    };
    // The registry keeps as many limiters as it ever does.
    (1..PAIRS / 4).for_each(call);
    let memory = allocation_counter::measure(|| (PAIRS / 4..PAIRS).for_each(call));
    assert!(memory.bytes_current < 64 * 1024, "{memory:?}");
    std::fs::remove_file(path).unwrap();
}

#[test]
fn lists_of_limited_keys_keep_little_of_them() {
    const KEYS: usize = 50;
    let list = MostLimited::new(1000).keep_keys();
    #[cfg(not(feature = "dashboard"))]
    let builder = Registry::builder();
    #[cfg(feature = "dashboard")]
    let dashboard = ratelimits::dashboard::Dashboard::new(|_| true).keep_keys();
    #[cfg(feature = "dashboard")]
    let builder = Registry::builder().observer(dashboard.observer());
    let registry = builder.observer(list.observer()).in_memory();
    let limiter = registry.limiter("long-keys", FixedWindow::new(1, DAY)).unwrap();
    let mut key = "x".repeat(1 << 20);
    let memory = allocation_counter::measure(|| {
        for number in 10..10 + KEYS {
            key.replace_range(..2, &number.to_string());
            assert!(now(limiter.try_acquire_n(&*key, 2)).is_err());
        }
    });
    assert_eq!(list.list().len(), KEYS);
    // 20 MB for 2,000 of them, which would take long to hash here.
    assert!(memory.bytes_current < 10_000 * KEYS as i64, "{memory:?}");
}

#[cfg(feature = "redis")]
#[test]
fn long_key_for_redis_is_copied_once() {
    let long = "a:\n".repeat(1 << 18);
    // Outside a runtime the call fails, with its key built.
    let registry = Registry::connect_lazy("redis://127.0.0.1:1").expect("the URL is valid");
    let policy = ratelimits::TokenBucket::per_second(1);
    let limiter = registry.limiter("long", policy).expect("the policy is valid");
    let limiter = limiter.on_store_error(ratelimits::OnStoreError::Deny);
    let memory =
        allocation_counter::measure(|| _ = now(limiter.try_acquire(&*long)).expect_err("no runtime"));
    assert!(memory.bytes_total < 2 * long.len() as u64, "{memory:?}");
}

/// Polls a future that must be ready, without a runtime.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a decision in process does not wait"),
    }
}
