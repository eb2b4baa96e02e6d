//! Loom's atomics and mutex in place of those of `ratelimit-runtime/src/sync.rs`.

use std::cell::Cell;

pub(crate) use loom::hint::spin_loop;
use loom::sync::atomic;
pub(crate) use loom::sync::atomic::{Ordering, fence};
pub(crate) use loom::sync::{Mutex, MutexGuard};
pub(crate) use loom::thread::yield_now;

/// The number of elements of which a level of an array keeps at most so many here, because loom tracks each.
const FEW: usize = 64;

/// Of the loads of an atomic, loom remembers only the last, and tries no other order of a store and the loads before that one.
/// So each access begins with a store to a second atomic, which makes all of them dependent.
macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug)]
        pub(crate) struct $name {
            value: atomic::$name,
            accesses: atomic::AtomicBool,
        }

        impl $name {
            pub(crate) fn new(value: $value) -> Self {
                $name { value: atomic::$name::new(value), accesses: atomic::AtomicBool::new(false) }
            }

            pub(crate) fn load(&self, order: Ordering) -> $value {
                self.access().load(order)
            }

            pub(crate) fn store(&self, value: $value, order: Ordering) {
                self.access().store(value, order);
            }

            pub(crate) fn swap(&self, value: $value, order: Ordering) -> $value {
                self.access().swap(value, order)
            }

            pub(crate) fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.access().compare_exchange(current, new, success, failure)
            }

            fn access(&self) -> &atomic::$name {
                self.accesses.store(true, Ordering::Relaxed);
                &self.value
            }
        }
    };
}

atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

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

/// What can be all zero.
pub(crate) trait Zeroed {
    fn zero() -> Self;
}

impl Zeroed for AtomicU32 {
    fn zero() -> Self {
        AtomicU32::new(0)
    }
}

impl Zeroed for AtomicU64 {
    fn zero() -> Self {
        AtomicU64::new(0)
    }
}

/// Returns elements that are all zero.
pub(crate) fn zeroed<T: Zeroed>(len: usize) -> Box<[T]> {
    (0..len.min(FEW)).map(|_| T::zero()).collect()
}
