//! What the command `ratelimits` knows of the keys in a Redis. Not covered by semantic versioning.

mod holders;
mod keyspace;
mod pieces;
mod reading;

use std::time::Duration;

pub use self::holders::Holder;
pub use self::keyspace::{Keyspace, Login, MAX_PAUSE, Scan, inventory_key, override_log_key, overrides_key};
pub use self::pieces::{KeyPieces, Parts, key_text, path_of};
pub use self::reading::{KeyState, Reading, policy_of};
use crate::base::units;

/// Parses a duration as attributes have it: `1h30m`.
///
/// # Errors
///
/// What is wrong with it, as a predicate.
pub fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    units::parse_duration(text)
}
