//! Auto traits of the futures.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

use super::limits::{count_limit, rate_limit};
use super::{AppResult, assert_limited, assert_outputs, isolated};

#[rate_limit("1/day", key = mutex.lock().unwrap())]
async fn guard_in_the_key(mutex: &Mutex<u8>) -> AppResult<()> {
    tokio::task::yield_now().await;
    *mutex.lock().unwrap() += 1;
    Ok(())
}

#[rate_limit(rate = rate, key = "<format_args!(\"{id}-{id}\")>", fallback = later, pass_args)]
async fn computed(rate: f64, id: u8) -> u8 {
    tokio::task::yield_now().await;
    id + u8::from(rate > 1.0)
}

async fn later(_: f64, id: u8) -> u8 {
    tokio::task::yield_now().await;
    id + 100
}

/// Not `Send`; lives only while a key or a number is evaluated.
fn local(id: u8) -> Rc<u8> {
    Rc::new(id)
}

fn locked(mutex: &Mutex<u8>) -> MutexGuard<'_, u8> {
    mutex.lock().unwrap()
}

#[count_limit(
    limit = *locked(mutex) + *local(0),
    period = "1d",
    cost = *local(*locked(mutex)),
    key = (local(1), "text", locked(mutex)),
    fallback = none
)]
async fn guards_everywhere(mutex: &Mutex<u8>) -> u8 {
    tokio::task::yield_now().await;
    *locked(mutex)
}

fn none() -> u8 {
    0
}

fn is_send<T: Send>(future: T) -> T {
    future
}

#[test]
fn guards_in_arguments_keep_futures_send() {
    let mutex = Mutex::new(1);
    isolated(async {
        is_send(guard_in_the_key(&mutex)).await.unwrap();
        *mutex.lock().unwrap() = 1;
        assert_limited(is_send(guard_in_the_key(&mutex)).await);
        assert_outputs!(
            is_send(computed(0.001, 5)) => 5, 105;
            is_send(guards_everywhere(&mutex)) => 1, 0;
        );
        assert_eq!(tokio::spawn(computed(5.0, 6)).await.unwrap(), 7);
    });
}

#[rate_limit("1/day", fallback = zero, pass_args)]
async fn non_send(value: Rc<u8>) -> u8 {
    tokio::task::yield_now().await;
    *value
}

async fn zero(value: Rc<u8>) -> u8 {
    tokio::task::yield_now().await;
    value.wrapping_mul(0)
}

#[rate_limit("1/day", key = value.get())]
async fn non_send_by_reference(value: &Cell<u8>) -> AppResult<Rc<u8>> {
    tokio::task::yield_now().await;
    value.set(value.get() + 1);
    Ok(Rc::new(value.get()))
}

#[test]
fn non_send_futures() {
    isolated(async {
        assert_outputs!(non_send(Rc::new(1)) => 1, 0);
        let value = Cell::new(1);
        assert_eq!(*non_send_by_reference(&value).await.unwrap(), 2);
        value.set(1);
        assert_limited(non_send_by_reference(&value).await);
    });
}

#[count_limit(1, "1d")]
async fn counted(cell: Cell<u8>) -> AppResult<u8> {
    tokio::task::yield_now().await;
    cell.set(cell.get() + 1);
    Ok(cell.get())
}

#[test]
fn send_but_not_sync_arguments() {
    isolated(async { assert_eq!(is_send(counted(Cell::new(1))).await.unwrap(), 2) });
}
