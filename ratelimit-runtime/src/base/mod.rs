//! Numbers, units, time and logging: nothing about limits.

pub(crate) mod all_some;
pub(crate) mod bounds;
#[cfg_attr(not(feature = "calendar"), path = "calendar_disabled.rs")]
pub(crate) mod calendar;
pub(crate) mod clock;
pub(crate) mod coop;
pub(crate) mod invalid_policy;
pub(crate) mod lazy_box;
pub(crate) mod log;
pub(crate) mod number_map;
pub(crate) mod parker;
pub(crate) mod prefetch;
#[cfg(test)]
pub(crate) mod property_tests;
#[cfg(any(feature = "redis", feature = "web"))]
pub(crate) mod random;
#[cfg(test)]
pub(crate) mod random_numbers;
pub(crate) mod rate;
pub(crate) mod runtime;
pub(crate) mod shared_numbers;
#[cfg(feature = "overrides")]
pub(crate) mod shared_table;
#[cfg_attr(ratelimits_loom, path = "sync_loom.rs")]
pub(crate) mod sync;
pub(crate) mod timer;
pub(crate) mod units;
