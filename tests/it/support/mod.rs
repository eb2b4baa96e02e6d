//! What the tests of the stores stand on: Redis servers of their own, what happens to these and to the network before
//! them, and stores under a time they set.

pub(crate) mod admitted;
pub(crate) mod budget;
pub(crate) mod given;
pub(crate) mod numbers;
pub(crate) mod policies;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod registries;
pub(crate) mod schedule;
pub(crate) mod scheduled;
pub(crate) mod server;
pub(crate) mod stalls;
pub(crate) mod told;
pub(crate) mod until;
