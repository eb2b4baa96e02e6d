//! The integration tests, in one binary.

mod axum;
mod conformance;
mod deployments;
mod examples;
mod faults;
mod flood;
mod guava;
mod hammer;
mod macros;
mod model;
mod per_instance;
mod process;
mod property;
mod redis;
mod registry;
mod scripts;
mod sources;
mod support;
mod ui;
mod waiting;
