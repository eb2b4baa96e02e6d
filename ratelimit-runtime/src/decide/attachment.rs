//! What an observer keeps of a policy, so that it need not be found by name at each call.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// A value that one owner keeps with a policy.
#[derive(Default)]
pub(crate) struct Attachment(OnceLock<(u64, Box<dyn Any + Send + Sync>)>);

/// Identifies who keeps something with policies. No two have been the same.
#[derive(Debug)]
pub(crate) struct Owner(u64);

impl Owner {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Owner(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl Attachment {
    /// Returns the value of this owner, made at its first call. `None` if it is that of another one.
    pub(crate) fn get_or_make<T: Send + Sync + 'static>(
        &self,
        Owner(owner): &Owner,
        make: impl FnOnce() -> T,
    ) -> Option<&T> {
        let (of, value) = self.0.get_or_init(|| (*owner, Box::new(make())));
        if of == owner { value.downcast_ref() } else { None }
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Attachment").field(&self.0.get().map(|(owner, _)| owner)).finish()
    }
}
