//! The integration tests, in one binary.

mod axum;
mod batches;
mod blocking;
mod calendar;
mod changing;
mod concurrency;
mod conformance;
mod contention;
mod debug;
mod denials;
mod deployments;
mod ended_runtimes;
mod events;
mod examples;
mod faults;
mod flood;
#[cfg(unix)]
mod forked;
mod guava;
mod guide;
mod known_limiter_bugs;
mod leases;
mod linearizability;
mod macros;
#[cfg(feature = "metrics")]
mod metrics;
mod model;
mod most_limited;
mod notifying;
mod observer;
#[cfg(feature = "overrides")]
mod overrides;
mod pausing;
mod penalties;
mod per_instance;
mod policies;
mod process;
mod property;
mod redis;
mod refunds;
mod registry;
mod scripts;
mod settling;
mod simulation;
mod suggestions;
mod support;
mod unsatisfiable;
mod waiting;
