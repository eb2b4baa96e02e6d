//! Fixtures: Redis servers and what can happen to them and to the network, stores on a controlled clock, and records of
//! what was decided.

pub(crate) mod admitted;
pub(crate) mod budget;
pub(crate) mod client;
pub(crate) mod given;
pub(crate) mod numbers;
pub(crate) mod policies;
pub(crate) mod proxy;
pub(crate) mod random;
pub(crate) mod registries;
pub(crate) mod schedule;
pub(crate) mod scheduled;
pub(crate) mod server;
pub(crate) mod stall_monitor;
pub(crate) mod store;
pub(crate) mod told;
pub(crate) mod until;

pub(crate) use self::told::log_capture;
