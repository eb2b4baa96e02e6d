//! What is seen of decisions: metrics, the keys that are limited most, the record of a request, suggested
//! numbers, and what the dashboard counts.

mod by_policy;
#[cfg(feature = "dashboard")]
pub(crate) mod dashboard;
#[cfg(feature = "metrics")]
pub(crate) mod metrics;
pub(crate) mod most_limited;
#[cfg(feature = "web")]
pub(crate) mod record;
pub(crate) mod suggestions;
