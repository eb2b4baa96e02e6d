//! The integration tests, in one binary.

mod axum;
mod conformance;
mod examples;
mod guava;
mod hammer;
mod macros;
mod model;
mod process;
mod property;
mod redis;
mod registry;
mod scripts;
mod sources;
mod support;
mod ui;
mod waiting;
