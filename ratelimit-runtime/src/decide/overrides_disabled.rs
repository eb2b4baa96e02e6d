//! Stands in for overrides in builds without the feature `overrides`. There are none.

/// The overrides of a registry: none.
#[derive(Debug, Default)]
pub(crate) struct Overrides;

/// Returns what is wrong with overrides.
pub(crate) fn problems() -> Vec<String> {
    Vec::new()
}

impl Overrides {
    pub(crate) fn micros_until(&self, _until: u64) -> Option<u64> {
        None
    }
}
