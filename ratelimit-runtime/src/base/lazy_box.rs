//! A value that is made when somebody asks for it.

use std::mem::{self, ManuallyDrop};

use once_cell::race::OnceBox;

/// A value in a box that is made when somebody asks for it, or was there from the start. One word.
///
/// To drop it without a value is one comparison, and a value is dropped by a call that is never inlined and is not passed this
/// box. So where the compiler sees that there is no value, it removes everything around this that is not read.
pub(crate) struct LazyBox<T>(ManuallyDrop<OnceBox<T>>);

impl<T> LazyBox<T> {
    #[inline]
    pub(crate) const fn empty() -> Self {
        LazyBox(ManuallyDrop::new(OnceBox::new()))
    }

    #[inline]
    pub(crate) fn of(value: impl Into<Box<T>>) -> Self {
        LazyBox(ManuallyDrop::new(OnceBox::with_value(value.into())))
    }

    #[inline]
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}

impl<T> Default for LazyBox<T> {
    fn default() -> Self {
        LazyBox::empty()
    }
}

impl<T> Drop for LazyBox<T> {
    #[inline]
    fn drop(&mut self) {
        if self.0.get().is_some() {
            drop_value(mem::take(&mut *self.0));
        }
    }
}

#[cold]
#[inline(never)]
fn drop_value<T>(value: OnceBox<T>) {
    drop(value);
}
