//! What the tests of the stores stand on: a Redis server of their own, and stores under a time they set.

pub(crate) mod gate;
pub(crate) mod given;
pub(crate) mod policies;
pub(crate) mod random;
pub(crate) mod registries;
pub(crate) mod schedule;
pub(crate) mod scheduled;
pub(crate) mod server;
pub(crate) mod told;
