//! The integration tests, in one binary.

mod axum;
mod blocking;
mod changing;
mod conformance;
mod contention;
mod debug;
mod deployments;
mod events;
mod examples;
mod faults;
mod flood;
mod guava;
mod known_limiter_bugs;
mod linearizability;
mod macros;
mod model;
mod never;
mod per_instance;
mod process;
mod property;
mod redis;
mod registry;
mod scripts;
mod support;
mod ui;
mod waiting;
