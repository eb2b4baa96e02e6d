//! A value that is made when somebody asks for it.

use std::mem::ManuallyDrop;
use std::sync::OnceLock;

/// A value in a box that is made when somebody asks for it, or was there from the start.
///
/// To drop it without a value is one comparison, and a value is dropped by a call that is never inlined and is not passed this
/// box. So where the compiler sees that there is no value, it removes everything around this that is not read.
pub(crate) struct LazyBox<T>(ManuallyDrop<OnceLock<Box<T>>>);

impl<T> LazyBox<T> {
    #[inline]
    pub(crate) const fn empty() -> Self {
        LazyBox(ManuallyDrop::new(OnceLock::new()))
    }

    pub(crate) fn of(value: impl Into<Box<T>>) -> Self {
        LazyBox(ManuallyDrop::new(OnceLock::from(value.into())))
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(|value| &**value)
    }

    pub(crate) fn get_mut(&mut self) -> Option<&mut T> {
        self.0.get_mut().map(|value| &mut **value)
    }

    /// Returns the value, made now if it was not there.
    pub(crate) fn get_or_make(&mut self, make: impl FnOnce() -> T) -> &mut T {
        self.get_or_init(make);
        self.get_mut().expect("it was made just now")
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Box::new(make()))
    }
}

impl<T> Drop for LazyBox<T> {
    #[inline]
    fn drop(&mut self) {
        if let Some(value) = self.0.take() {
            drop_value(value);
        }
    }
}

#[cold]
#[inline(never)]
fn drop_value<T>(value: Box<T>) {
    drop(value);
}
