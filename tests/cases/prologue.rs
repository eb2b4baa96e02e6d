//! Properties of the prologue that `charge_when` does not have, as it turns the body into a nested future.

#![expect(clippy::large_types_passed_by_value, reason = "their size in the future is what is measured")]

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use ratelimits::{concurrency_limit, count_limit, funnel_limit, rate_limit};

use super::app::{AppResult, assert_admits_one, assert_outputs, isolated};

type Load = [u8; 1024];

async fn work(load: &[u8]) -> usize {
    tokio::task::yield_now().await;
    load.len()
}

async fn plain(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[rate_limit(5, key = load[0])]
async fn limited(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[rate_limit(load[0], burst = load.len(), key = "<load[0]>:<@user>", fallback = answer, pass_args)]
async fn with_async_fallback(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

async fn answer(load: Load) -> Result<usize, ratelimits::Error> {
    tokio::task::yield_now().await;
    Ok(work(&load).await)
}

#[rate_limit(5, fallback = |_| answer(load))]
async fn with_closure(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[rate_limit(5, key = load[0], borrow, timeout = Duration::from_millis(load[1].into()))]
#[funnel_limit(5, 1, key = load[0], queue, timeout = "1s")]
async fn with_timeouts(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[rate_limit(5, key = load[0], skip_when = load[1] == 0)]
#[count_limit(5, "1m", key = (load[2], load[3]), fallback = answer, pass_args)]
#[count_limit(10, "1h", shadow)]
async fn stacked(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[concurrency_limit(20, key = load[0], timeout = "1s", fallback = answer, pass_args)]
#[rate_limit(5, key = load[0])]
async fn holding(load: Load) -> Result<usize, ratelimits::Error> {
    Ok(work(&load).await)
}

#[test]
fn limits_add_at_most_128_bytes() {
    let bare = size_of_val(&plain([0; 1024]));
    let sizes = [
        size_of_val(&limited([0; 1024])),
        size_of_val(&with_async_fallback([0; 1024])),
        size_of_val(&with_closure([0; 1024])),
        size_of_val(&with_timeouts([0; 1024])),
        size_of_val(&stacked([0; 1024])),
        size_of_val(&holding([0; 1024])),
    ];
    assert!(sizes.iter().all(|&size| size <= bare + 128), "{sizes:?} bytes, bare {bare}");
}

async fn plain_large() -> Load {
    work(&[]).await;
    [1; 1024]
}

#[rate_limit(5, fallback = large)]
async fn with_large_output() -> Load {
    work(&[]).await;
    [1; 1024]
}

fn large() -> Load {
    [0; 1024]
}

#[test]
fn large_outputs_add_at_most_128_bytes() {
    let (bare, size) = (size_of_val(&plain_large()), size_of_val(&with_large_output()));
    assert!(size <= bare + 128, "{size} bytes, bare {bare}");
}

#[count_limit(1, "1d", fallback = none, pass_args)]
async fn non_send_output(list: &[u8]) -> Option<Rc<u8>> {
    work(list).await;
    list.first().copied().map(Rc::new)
}

async fn none(list: &[u8]) -> Option<Rc<u8>> {
    work(list).await;
    None
}

#[count_limit(1, "1d", fallback = busy)]
async fn non_send_output_of_a_function(list: &[u8]) -> Result<u8, Box<dyn Error>> {
    work(list).await;
    Ok(1)
}

fn busy() -> Result<u8, Box<dyn Error>> {
    Err("busy".into())
}

#[count_limit(1, "1d", fallback = |error| Err(error.into()))]
#[rate_limit(5, fallback = |_| Ok(0))]
async fn non_send_output_of_a_closure(list: &[u8]) -> Result<u8, Box<dyn Error>> {
    work(list).await;
    Ok(1)
}

fn is_send<T: Send>(future: T) -> T {
    future
}

#[test]
fn non_send_outputs_keep_futures_send() {
    isolated(async {
        assert_outputs!(is_send(non_send_output(&[1])) => Some(Rc::new(1)), None);
        assert_eq!(is_send(non_send_output_of_a_function(&[])).await.unwrap(), 1);
        assert_eq!(is_send(non_send_output_of_a_function(&[])).await.unwrap_err().to_string(), "busy");
        assert_eq!(is_send(non_send_output_of_a_closure(&[])).await.unwrap(), 1);
        assert!(is_send(non_send_output_of_a_closure(&[])).await.unwrap_err().is::<ratelimits::Error>());
    });
}

/// As deep as plain async functions can be nested before the compiler gives up.
macro_rules! tower {
    ($name:ident $next:ident $($rest:ident)*) => {
        #[count_limit(1, "1d", key = depth.len(), fallback = work, pass_args)]
        #[rate_limit(1000, fallback = work, pass_args)]
        async fn $name(depth: &[u8]) -> usize {
            $next(&depth[1..]).await + 1
        }
        tower!($next $($rest)*);
    };
    ($name:ident) => {
        async fn $name(depth: &[u8]) -> usize {
            work(depth).await
        }
    };
}
tower! {
    f00 f01 f02 f03 f04 f05 f06 f07 f08 f09 f10 f11 f12 f13 f14 f15
    f16 f17 f18 f19 f20 f21 f22 f23 f24 f25 f26 f27 f28 f29
}

#[test]
fn prologue_adds_no_type_layers() {
    isolated(async {
        assert_outputs!(f00(&[0; 29]) => 29, 29);
        assert_eq!(f20(&[0; 9]).await, 9);
    });
}

#[count_limit(1, "1d", bind = decision)]
fn boxed(text: &str) -> Pin<Box<dyn Future<Output = AppResult<usize>> + Send + '_>> {
    Box::pin(async move { Ok(text.len() + decision.policies().len()) })
}

#[test]
fn returned_futures_see_their_decision_and_are_send() {
    isolated(async {
        assert_admits_one!(is_send(boxed("text")) => 5);
    });
}
