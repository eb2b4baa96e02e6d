//! The identity of a policy.

use std::hash::{DefaultHasher, Hasher};

/// Identifies a policy by its owner, a prefix and a name, whatever its numbers are. The memory store shares its keys fairly
/// among policies.
///
/// A hash, because policies come and go. If two policies ever had the same, they would have one share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PolicyId(u64);

impl PolicyId {
    /// Returns the identity of the policy with this prefix and name.
    #[must_use]
    pub fn new(prefix: &str, name: &str) -> Self {
        let mut hasher = DefaultHasher::new();
        for piece in [prefix, name] {
            hasher.write(piece.as_bytes());
            hasher.write_u8(0xff);
        }
        PolicyId(hasher.finish())
    }
}
