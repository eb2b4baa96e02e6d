//! Keys with fingerprints of a model's choice: hashes with a random seed would take another path each time.

use std::hash::{Hash, Hasher};

use crate::policy_id::PolicyId;

/// The name of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub(crate) Repr, pub(crate) PolicyId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    Hash(Fingerprint),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fingerprint(pub(crate) [u64; 2]);

impl Key {
    /// Returns a key. The lower bits of the first half select its chain in the table.
    #[must_use]
    pub fn new(halves: [u64; 2]) -> Self {
        Key(Repr::Hash(Fingerprint(halves)), PolicyId::default())
    }

    pub(crate) fn fingerprint(&self) -> Fingerprint {
        let Repr::Hash(fingerprint) = self.0;
        fingerprint
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}
