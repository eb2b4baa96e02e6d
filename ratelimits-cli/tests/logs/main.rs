//! The commands that read logs.

mod command;
mod planted;
mod simulate;
mod suggest;
mod suggested;
mod verify;

/// Whether tests make as many calls as they may.
fn is_long() -> bool {
    std::env::var_os("RATELIMITS_TEST_BUDGET").is_some_and(|budget| budget == "long")
}
