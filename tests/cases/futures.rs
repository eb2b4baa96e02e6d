//! What the future of a limited function is like.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Mutex, MutexGuard};

use super::limits::{count_limit, rate_limit};
use super::{AppResult, alone, assert_limited};

#[rate_limit("1/day", key = guarded.lock().unwrap())]
async fn guard_in_the_key(guarded: &Mutex<u8>) -> AppResult<()> {
    tokio::task::yield_now().await;
    *guarded.lock().unwrap() += 1;
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

/// Of one thread, and alive only while a key or a number is computed.
fn local(id: u8) -> Rc<u8> {
    Rc::new(id)
}

fn locked(guarded: &Mutex<u8>) -> MutexGuard<'_, u8> {
    guarded.lock().unwrap()
}

#[count_limit(
    limit = *locked(guarded) + *local(0),
    period = "1d",
    cost = *local(*locked(guarded)),
    key = (local(1), "text", locked(guarded)),
    fallback = none
)]
async fn guards_everywhere(guarded: &Mutex<u8>) -> u8 {
    tokio::task::yield_now().await;
    *locked(guarded)
}

fn none() -> u8 {
    0
}

fn is_send<T: Send>(future: T) -> T {
    future
}

#[test]
fn are_send_where_keys_and_numbers_hold_guards_and_pointers() {
    let guarded = Mutex::new(1);
    alone(async {
        is_send(guard_in_the_key(&guarded)).await.unwrap();
        *guarded.lock().unwrap() = 1;
        assert_limited(is_send(guard_in_the_key(&guarded)).await);
        assert_eq!(is_send(computed(0.001, 5)).await, 5);
        assert_eq!(is_send(computed(0.001, 5)).await, 105);
        assert_eq!(is_send(guards_everywhere(&guarded)).await, 1);
        assert_eq!(is_send(guards_everywhere(&guarded)).await, 0);
        assert_eq!(tokio::spawn(computed(5.0, 6)).await.unwrap(), 7);
    });
}

#[rate_limit("1/day", fallback = zero, pass_args)]
async fn of_one_thread(value: Rc<u8>) -> u8 {
    tokio::task::yield_now().await;
    *value
}

async fn zero(value: Rc<u8>) -> u8 {
    tokio::task::yield_now().await;
    value.wrapping_mul(0)
}

#[rate_limit("1/day", key = value.get())]
async fn of_one_thread_by_reference(value: &Cell<u8>) -> AppResult<Rc<u8>> {
    tokio::task::yield_now().await;
    value.set(value.get() + 1);
    Ok(Rc::new(value.get()))
}

#[test]
fn need_not_be_send() {
    alone(async {
        assert_eq!((of_one_thread(Rc::new(1)).await, of_one_thread(Rc::new(1)).await), (1, 0));
        let value = Cell::new(1);
        assert_eq!(*of_one_thread_by_reference(&value).await.unwrap(), 2);
        value.set(1);
        assert_limited(of_one_thread_by_reference(&value).await);
    });
}

/// Can be sent, but not shared.
#[count_limit(1, "1d")]
async fn counted(cell: Cell<u8>) -> AppResult<u8> {
    tokio::task::yield_now().await;
    cell.set(cell.get() + 1);
    Ok(cell.get())
}

#[test]
fn is_send_if_the_arguments_can_be_sent_but_not_shared() {
    fn is_send<T: Send>(future: T) -> T {
        future
    }
    alone(async { assert_eq!(is_send(counted(Cell::new(1))).await.unwrap(), 2) });
}
