//! The integration tests, in one binary.

mod axum;
mod conformance;
mod examples;
mod faults;
mod flood;
mod guava;
mod hammer;
mod macros;
mod model;
mod on_store_error;
mod process;
mod property;
mod redis;
mod registry;
mod scripts;
mod shares;
mod sources;
mod storm;
mod support;
mod ui;
mod waiting;
