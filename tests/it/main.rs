//! The integration tests, in one binary.

mod axum;
mod chaos;
mod conformance;
mod contention;
mod deployments;
mod examples;
mod faults;
mod flood;
mod guava;
mod known_limiter_bugs;
mod macros;
mod model;
mod on_store_error;
mod per_instance;
mod process;
mod property;
mod recovery;
mod redis;
mod registry;
mod scripts;
mod storm;
mod support;
mod trouble;
mod ui;
mod waiting;
