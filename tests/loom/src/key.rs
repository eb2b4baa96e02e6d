//! Keys with fingerprints of a model's choice: hashes with a random seed would take another path each time.

use std::hash::{Hash, Hasher};

use crate::policy_id::PolicyId;

/// The name of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key(pub(crate) Repr, pub(crate) PolicyId);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Repr {
    Hash(Fingerprint),
    Text(String),
}

/// Stands for the hash of a text, which the models do not use.
pub(crate) struct KeyHasher;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fingerprint(pub(crate) [u64; 2]);

impl Key {
    /// Returns a key. The lower bits of the first half select its chain in the table.
    #[must_use]
    pub fn new(halves: [u64; 2]) -> Self {
        Key(Repr::Hash(Fingerprint(halves)), PolicyId::default())
    }
}

impl KeyHasher {
    pub(crate) fn new() -> Self {
        KeyHasher
    }

    pub(crate) fn text(&mut self, _: &str) {}

    pub(crate) fn finish(&self) -> Fingerprint {
        unreachable!("keys are not hashed here")
    }
}

impl Hash for Fingerprint {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0[0]);
    }
}
