//! What the tests share: Redis servers, failures of servers and network, stores under a manual clock, and random input.

pub(crate) mod bound_checker;
pub(crate) mod budget;
pub(crate) mod load;
pub(crate) mod numbers;
pub(crate) mod policies;
pub(crate) mod processes;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod registries;
pub(crate) mod server;
pub(crate) mod stalls;
pub(crate) mod test_store;
pub(crate) mod told;
pub(crate) mod until;

/// The old names, until all callers use the new ones.
pub(crate) mod admitted {
    pub(crate) use super::load::{LoadGenerator as Crowd, LoadReport as Decided};
}
pub(crate) mod scheduled {
    pub(crate) use super::test_store::START;
}
