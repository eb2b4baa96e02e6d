//! The pieces of a key that do not come from its caller.

use std::fmt::Display;

use crate::name::Name;

/// The pieces of a key other than its parts.
pub(crate) struct Head<'a> {
    pub(crate) namespace: &'a str,
    pub(crate) prefix: &'a str,
    pub(crate) name: &'a Name,
    /// The algorithm and the numbers that shape its state.
    pub(crate) shape: &'a dyn Display,
    /// The function whose name is the tag, if the decision also has other keys.
    pub(crate) function: Option<&'a dyn Display>,
}

impl<'a> Head<'a> {
    /// Returns the hash tag if it is not a digest of the parts: the function, or the name if there are no parts.
    pub(super) fn tag(&self, parts: usize) -> Option<&'a dyn Display> {
        match &self.function {
            Some(function) => Some(*function),
            None => (parts == 0).then_some(self.name),
        }
    }
}
