//! Boxes that are used again by the next call of their thread. Under a flood most calls are refused, each with one.

use std::cell::Cell;
use std::mem;
use std::thread::LocalKey;

/// The spare box of a thread.
pub(super) type Spare<T> = Cell<Option<Box<T>>>;

/// Something that a spare box holds.
pub(super) trait Reusable: Sized + 'static {
    /// What a box holds that is not in use. It owns nothing.
    const UNUSED: Self;

    /// The spare box.
    fn spare() -> &'static LocalKey<Spare<Self>>;

    /// Puts it into the spare box, or a new one.
    #[inline(always)]
    fn boxed(self) -> Box<Self> {
        Self::put_into(Self::take_box(), self)
    }

    /// Takes the spare box, or a new one, to [put](Self::put_into) something into it. Taken before that is made, so that it is made in its
    /// place: a copy would read together what was written apart, which is slow.
    #[inline(always)]
    fn take_box() -> Box<Self> {
        let spare = Self::spare().try_with(Cell::take).ok().flatten();
        spare.unwrap_or_else(new)
    }

    /// Puts it into a box that is not in use.
    #[inline(always)]
    fn put_into(mut unused: Box<Self>, value: Self) -> Box<Self> {
        // What is there is not dropped.
        mem::forget(mem::replace(&mut *unused, value));
        unused
    }

    /// Takes it out of a box, and keeps that.
    #[inline(always)]
    fn unboxed(mut boxed: Box<Self>) -> Self {
        let value = mem::replace(&mut *boxed, Self::UNUSED);
        keep(boxed);
        value
    }

    /// Drops it, and keeps its box.
    #[inline(always)]
    fn give_back(mut boxed: Box<Self>) {
        *boxed = Self::UNUSED;
        keep(boxed);
    }
}

#[inline(always)]
fn keep<T: Reusable>(boxed: Box<T>) {
    let _ = T::spare().try_with(|spare| spare.set(Some(boxed)));
}

#[cold]
#[inline(never)]
fn new<T: Reusable>() -> Box<T> {
    Box::new(T::UNUSED)
}
