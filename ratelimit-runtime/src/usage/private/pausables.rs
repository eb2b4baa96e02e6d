//! What `pause_when` pauses.

use std::fmt;
use std::time::Duration;

use crate::decide::pausing::Pausable;

/// The keys of a call that may be paused once its output is known, by the index of the attribute. Dropped, as with a call that is
/// cancelled or panics, it pauses nothing.
pub struct Pausables(pub(super) Vec<(usize, Pausable)>);

impl Pausables {
    /// Pauses each key for as long as the function of its attribute says. The call has ended, so it does not wait for Redis.
    pub fn pause(self, durations: &[(usize, Option<Duration>)]) {
        for (index, pausable) in self.0 {
            let duration = durations.iter().find(|(of, _)| *of == index).and_then(|(_, duration)| *duration);
            if let Some(duration) = duration {
                pausable.pause_at_once(duration);
            }
        }
    }
}

/// For how long a key is paused, if it is.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say for how long the key is paused",
    label = "not a `Duration` or an `Option<Duration>`",
    note = "`pause_when` takes a closure that returns one: `|out| out.as_ref().err().and_then(|error| error.retry_after())`"
)]
pub trait PauseLength {
    /// Returns how long it is.
    fn length(self) -> Option<Duration>;
}

impl PauseLength for Duration {
    fn length(self) -> Option<Duration> {
        Some(self)
    }
}

impl PauseLength for Option<Duration> {
    fn length(self) -> Option<Duration> {
        self
    }
}

/// Returns for how long an output pauses the key. A function, so that the compiler infers the type of the closure's argument.
pub fn pause_when<T: ?Sized, L: PauseLength>(output: &T, length: impl FnOnce(&T) -> L) -> Option<Duration> {
    length(output).length()
}

/// Without keys.
impl fmt::Debug for Pausables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pausables").field(&self.0.len()).finish()
    }
}
