//! An anchor that many threads read and one at a time replaces.

use super::anchor::Anchor;
use crate::base::shared_numbers::SharedNumbers;

/// An anchor, or none. It shares its cache line with nothing that is written more often.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct SharedAnchor(SharedNumbers<3>);

impl SharedAnchor {
    /// Returns the anchor; `None` also while it is being replaced.
    #[inline]
    pub(super) fn get(&self) -> Option<Anchor> {
        let [ticks, nanos, pace] = self.0.get()?;
        Some(Anchor { ticks, nanos, pace })
    }

    /// Replaces the anchor. Only one thread at a time may do so.
    pub(super) fn set(&self, anchor: Option<Anchor>) {
        self.0.set(anchor.map(|Anchor { ticks, nanos, pace }| [ticks, nanos, pace]));
    }
}
