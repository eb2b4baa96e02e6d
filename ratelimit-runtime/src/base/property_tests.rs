//! How much random tests do, and the configuration of all property tests.

use proptest::prelude::ProptestConfig;

/// Whether `RATELIMITS_TEST_BUDGET=long` asks for more.
pub(crate) fn is_long() -> bool {
    std::env::var_os("RATELIMITS_TEST_BUDGET").is_some_and(|budget| budget == "long")
}

/// Returns the configuration: more cases with `RATELIMITS_TEST_BUDGET=long`.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig::with_cases(if is_long() { 10_000 } else { 1_000 })
}
