//! The pause of a key.

/// A pause of a key, which may be over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// When it ends.
    pub until: u64,
    /// By how much the slots have moved that calls wait for, since the first of the pauses that some of them have waited through.
    pub moved: u64,
}

impl Pause {
    /// Returns the time as of which the state is read and written.
    #[must_use]
    pub fn time(self, now: u64) -> u64 {
        self.until.max(now)
    }

    /// Returns how much of it is left.
    pub(crate) fn left(self, now: u64) -> u64 {
        self.until.saturating_sub(now)
    }

    /// Returns when a slot comes that was given when slots had moved by so much.
    pub(crate) fn slot(self, slot: u64, moved: u64, now: u64) -> u64 {
        let slot = slot + self.moved.saturating_sub(moved);
        if self.left(now) > 0 { slot.max(self.until) } else { slot }
    }
}
