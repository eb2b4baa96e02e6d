//! How much work the random and endurance tests do.

#![allow(dead_code, reason = "the first callers follow")]

use std::env::VarError;

/// Returns `short`, or `long` with `RATELIMITS_TEST_BUDGET=long`.
pub(crate) fn budget(short: u64, long: u64) -> u64 {
    match std::env::var("RATELIMITS_TEST_BUDGET").as_deref() {
        Err(VarError::NotPresent) => short,
        Ok("long") => long,
        other => panic!("RATELIMITS_TEST_BUDGET is {other:?}; set it to \"long\" or unset it"),
    }
}
