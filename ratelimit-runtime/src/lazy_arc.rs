//! A value that is made when somebody asks for it.

use std::sync::{Arc, OnceLock};

/// A value that is made when somebody asks for it, or was there from the start.
///
/// An [`Arc`], although it is never shared, because the code that drops its value is never inlined. So dropping this without a
/// value is one comparison, and where the compiler sees that there is none, it removes everything that is not read.
pub(crate) struct LazyArc<T>(OnceLock<Arc<T>>);

impl<T> LazyArc<T> {
    #[inline]
    pub(crate) const fn empty() -> Self {
        LazyArc(OnceLock::new())
    }

    pub(crate) fn of(value: T) -> Self {
        LazyArc(Arc::new(value).into())
    }

    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get().map(|value| &**value)
    }

    pub(crate) fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
        self.0.get_or_init(|| Arc::new(make()))
    }
}
