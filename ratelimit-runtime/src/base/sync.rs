//! What threads share the memory store by. For the models of `tests/loom`, `sync_loom.rs` takes its place.

pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
pub(crate) use std::sync::{Mutex, MutexGuard, OnceLock};
pub(crate) use std::thread::yield_now;

pub(crate) use bytemuck::Zeroable as Zeroed;

/// Returns elements that are all zero.
pub(crate) fn zeroed<T: Zeroed>(len: usize) -> Box<[T]> {
    bytemuck::zeroed_slice_box(len)
}
