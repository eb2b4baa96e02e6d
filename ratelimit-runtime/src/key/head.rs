//! The pieces of a key that do not come from its caller.

use std::fmt::Display;

/// What the keys of a policy begin with, except for the namespace.
#[derive(Clone, Copy)]
pub(crate) struct Head<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) name: &'a str,
    /// The algorithm and the numbers that shape its state.
    pub(crate) shape: &'a dyn Display,
    /// The function whose name is the tag, if the decision also has other keys. Otherwise the tag is the digest of the parts, or
    /// the name if there are no parts.
    pub(crate) function: Option<&'a str>,
}
