//! What the tests share: Redis servers, failures of servers and network, stores under a manual clock, and random input.

pub(crate) mod bound_checker;
pub(crate) mod budget;
pub(crate) mod client;
pub(crate) mod leased_load;
pub(crate) mod load;
pub(crate) mod log_capture;
pub(crate) mod pause_checker;
pub(crate) mod policies;
pub(crate) mod processes;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod registries;
pub(crate) mod server;
pub(crate) mod stall_monitor;
pub(crate) mod store;
pub(crate) mod test_store;
mod tests;
pub(crate) mod until;
