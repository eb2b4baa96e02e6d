//! What the command `ratelimits` knows of the keys in a Redis. Not covered by semantic versioning.

mod keyspace;
mod pieces;
mod reading;

pub use self::keyspace::{Keyspace, Login, Scan, inventory_key, overrides_key};
pub use self::pieces::{KeyPieces, Parts, key_text, path_of};
pub use self::reading::{KeyState, Reading, policy_of};
