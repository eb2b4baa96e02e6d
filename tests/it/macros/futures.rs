//! What the future of a limited function is like.

use std::rc::Rc;
use std::sync::Mutex;

use ratelimits::rate_limit;

use super::{AppResult, alone};

#[rate_limit(5, key = guarded.lock().unwrap())]
async fn guard_in_key(guarded: &Mutex<u8>) -> AppResult<()> {
    tokio::task::yield_now().await;
    *guarded.lock().unwrap() += 1;
    Ok(())
}

#[rate_limit(rate = rate, key = "<format_args!(\"{id}-{id}\")>", fallback = later, pass_args)]
async fn computed(rate: f64, id: u8) -> u8 {
    tokio::task::yield_now().await;
    let _ = rate;
    id
}

async fn later(_: f64, id: u8) -> u8 {
    tokio::task::yield_now().await;
    id
}

#[rate_limit(5, fallback = f)]
async fn of_one_thread(value: Rc<u8>) -> u8 {
    tokio::task::yield_now().await;
    *value
}

fn f() -> u8 {
    0
}

fn is_send<T: Send>(future: T) -> T {
    future
}

#[test]
fn stay_send_if_the_arguments_are() {
    let guarded = Mutex::new(1);
    alone(async {
        is_send(guard_in_key(&guarded)).await.unwrap();
        assert_eq!(is_send(computed(1.0, 5)).await, 5);
        assert_eq!(of_one_thread(Rc::new(1)).await, 1);
    });
}

async fn work(load: &[u8]) -> usize {
    tokio::task::yield_now().await;
    load.len()
}

async fn plain(load: [u8; 1024]) -> AppResult<usize> {
    Ok(work(&load).await)
}

#[rate_limit(5, key = load[0])]
async fn limited(load: [u8; 1024]) -> AppResult<usize> {
    Ok(work(&load).await)
}

#[rate_limit(load[0], burst = load.len(), key = "<load[0]>:<@user>", fallback = answer, pass_args)]
async fn with_async_fallback(load: [u8; 1024]) -> AppResult<usize> {
    Ok(work(&load).await)
}

async fn answer(load: [u8; 1024]) -> AppResult<usize> {
    tokio::task::yield_now().await;
    Ok(work(&load).await)
}

async fn plain_large() -> [u8; 1024] {
    work(&[]).await;
    [1; 1024]
}

#[rate_limit(5, fallback = large)]
async fn with_large_fallback() -> [u8; 1024] {
    work(&[]).await;
    [1; 1024]
}

fn large() -> [u8; 1024] {
    [0; 1024]
}

#[test]
fn hardly_grow() {
    let bare = size_of_val(&plain([0; 1024]));
    for size in [size_of_val(&limited([0; 1024])), size_of_val(&with_async_fallback([0; 1024]))] {
        assert!(size <= bare + 128, "{size} bytes, bare {bare}");
    }
    let (bare, size) = (size_of_val(&plain_large()), size_of_val(&with_large_fallback()));
    assert!(size <= bare + 128, "{size} bytes, bare {bare}");
}
