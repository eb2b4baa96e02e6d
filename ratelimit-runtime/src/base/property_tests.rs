//! The configuration of all property tests.

use proptest::prelude::ProptestConfig;

/// Returns the configuration: more cases with `RATELIMITS_TEST_BUDGET=long`.
pub(crate) fn config() -> ProptestConfig {
    let is_long = std::env::var_os("RATELIMITS_TEST_BUDGET").is_some_and(|budget| budget == "long");
    ProptestConfig::with_cases(if is_long { 10_000 } else { 1_000 })
}
