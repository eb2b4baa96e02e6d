//! What a call that is admitted allocates in this process, for a key that is known: nothing. A binary of its own, as its
//! allocator counts.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use ratelimits::{Error, Registry, count_limit, funnel_limit, rate_limit, window_limit};

#[rate_limit(1000, 1_000_000, key = (user, room))]
async fn token_bucket(user: &str, room: u64) -> Result<(), Error> {
    let _ = room;
    Ok(())
}

#[rate_limit("1000/h", 1_000_000, refill = interval, key = "<user>:room")]
async fn interval_bucket(user: &str) -> Result<(), Error> {
    Ok(())
}

#[count_limit(most, "1d", fallback = |_| 0, skip_when = user == "admin")]
async fn fixed_window(user: &str, most: u32) -> usize {
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
async fn lending_bucket(user: u64) -> Result<(), Error> {
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

/// Limited already, so that the policy in shadow reports nothing and the call goes ahead.
#[count_limit(1_000_000, "1d", shadow)]
async fn in_shadow() {}

#[test]
fn an_admitted_call_allocates_nothing() {
    macro_rules! allocate_nothing {
        ($($call:expr),* $(,)?) => {$(
            let first = allocation_counter::measure(|| _ = now($call));
            assert!(first.count_total > 0, "{}: the first call of a key makes room for it", stringify!($call));
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
            lending_bucket(7),
            sliding_window(7),
            stacked(7),
            in_shadow(),
        ];
    }));
}

/// The output of a future that waits for nothing, without a runtime.
fn now<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a decision in this process waits for nothing"),
    }
}
