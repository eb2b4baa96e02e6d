//! Penalties: pauses that last longer each time a key has been refused. Twin of the functions for paused keys in lua/prelude.lua:
//! change both or neither.

/// The penalties of a key, beside the pause that the last of them was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Penalty {
    /// The step of the last one when its pause was set, less those that had been forgiven by then. 0 if there is none.
    pub step: u64,
    /// Whether the key has admitted no call since. Then a refusal adds no penalty.
    pub is_spent: bool,
    /// After the pause, one step is forgiven each time so many microseconds have passed. 0 if there has been no penalty.
    pub forgiven_in: u64,
}

impl Penalty {
    /// Returns the step that counts at this time, given when the pause ends.
    #[must_use]
    pub fn step_at(self, pause_ends: u64, now: u64) -> u64 {
        let forgiven = now.saturating_sub(pause_ends).checked_div(self.forgiven_in);
        self.step.saturating_sub(forgiven.unwrap_or(0))
    }

    /// Returns when all steps are forgiven.
    pub(super) fn ends(self, pause_ends: u64) -> u64 {
        pause_ends.saturating_add(self.step.saturating_mul(self.forgiven_in))
    }
}
