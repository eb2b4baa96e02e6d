//! The pause of a key.

use super::penalty::Penalty;

/// A pause of a key, which may be over.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pause {
    /// When it ends.
    pub until: u64,
    /// By how much the slots have moved that calls wait for, since the first of the pauses that some of them have waited through.
    pub moved: u64,
    /// The penalties of the key, of which the pause may be one.
    pub penalty: Penalty,
}

impl Pause {
    /// Returns the step of the key's penalties that counts at this time; 0 if there is none.
    #[must_use]
    pub fn step(self, now: u64) -> u64 {
        self.penalty.step_at(self.until, now)
    }

    /// Whether a refusal at this time is another penalty: not while the key is paused, nor before it has admitted a call again.
    #[must_use]
    pub fn counts_refusals(self, now: u64) -> bool {
        self.left(now) == 0 && !self.penalty.is_spent
    }

    /// Returns when neither the pause nor a penalty matters.
    pub(super) fn ends(self) -> u64 {
        self.penalty.ends(self.until)
    }

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
