//! Loom's atomics and mutex in place of those of `sync.rs`, for the models of `tests/loom`.

use std::cell::Cell;
pub(crate) use std::default::Default as Zeroed;
use std::ops::Deref;
use std::sync::LockResult;

pub(crate) use loom::hint::spin_loop;
pub(crate) use loom::sync::MutexGuard;
use loom::sync::atomic;
pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::thread::yield_now;

pub(crate) type AtomicU32 = Atomic<atomic::AtomicU32>;
pub(crate) type AtomicU64 = Atomic<atomic::AtomicU64>;

/// The number of elements of which a level of an array keeps at most so many here, because loom tracks each.
const FEW: usize = 64;

/// Of the loads of an atomic, loom remembers only the last, and tries no other order of a store and the loads before that one.
/// So each access begins with a store to a second atomic, which makes all of them dependent.
#[derive(Debug, Default)]
pub(crate) struct Atomic<A> {
    value: A,
    accesses: atomic::AtomicBool,
}

impl<A> Atomic<A> {
    pub(crate) fn new<V>(value: V) -> Self
    where
        A: From<V>,
    {
        Atomic { value: value.into(), accesses: atomic::AtomicBool::new(false) }
    }
}

impl<A> Deref for Atomic<A> {
    type Target = A;

    fn deref(&self) -> &A {
        self.accesses.store(true, Ordering::Relaxed);
        &self.value
    }
}

thread_local! {
    /// How often mutexes were locked by the model of this thread, which runs all threads of the model.
    pub(crate) static LOCKS: Cell<u64> = const { Cell::new(0) };
}

/// A mutex that counts how often it is locked.
#[derive(Debug)]
pub(crate) struct Mutex<T>(loom::sync::Mutex<T>);

impl<T> Mutex<T> {
    pub(crate) fn new(value: T) -> Self {
        Mutex(loom::sync::Mutex::new(value))
    }

    pub(crate) fn lock(&self) -> LockResult<MutexGuard<'_, T>> {
        LOCKS.set(LOCKS.get() + 1);
        self.0.lock()
    }
}

loom::lazy_static! {
    /// How many values have been made by [`OnceLock`]s.
    static ref MADE: atomic::AtomicU64 = atomic::AtomicU64::new(0);
}

loom::thread_local! {
    /// How many of them this thread can see.
    static SEEN: Cell<u64> = Cell::new(0);
}

/// A cell that is written once, by one thread at a time. Another thread sees it some time later.
#[derive(Debug)]
pub(crate) struct OnceLock<T>(std::sync::OnceLock<(u64, T)>);

impl<T> OnceLock<T> {
    pub(crate) const fn new() -> Self {
        OnceLock(std::sync::OnceLock::new())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        let (made, value) = self.0.get()?;
        if SEEN.with(Cell::get) < *made {
            let seen = MADE.load(Ordering::Acquire);
            SEEN.with(|cell| cell.set(seen));
        }
        (SEEN.with(Cell::get) >= *made).then_some(value)
    }

    pub(crate) fn get_or_init(&self, init: impl FnOnce() -> T) -> &T {
        let make = || {
            let value = init();
            (MADE.fetch_add(1, Ordering::Release) + 1, value)
        };
        &self.0.get_or_init(make).1
    }
}

/// Returns elements that are all zero.
pub(crate) fn zeroed<T: Zeroed>(len: usize) -> Box<[T]> {
    (0..len.min(FEW)).map(|_| T::default()).collect()
}
