//! What users and generated code use: limiters, registries, the context of a request, responses, and the inventory.

pub(crate) mod call_site;
pub(crate) mod check;
pub(crate) mod client_ip;
pub(crate) mod context;
#[cfg(feature = "dashboard")]
pub mod dashboard;
#[cfg(all(feature = "overrides", feature = "redis"))]
#[doc(hidden)]
pub mod inspect;
pub(crate) mod limiter;
#[cfg(feature = "metrics")]
pub mod metrics;
pub(crate) mod policies;
pub(crate) mod policy_handle;
#[doc(hidden)]
pub mod private;
pub(crate) mod registry;
#[cfg(feature = "http")]
pub(crate) mod retry_after;
pub(crate) mod unknown_policy;
#[cfg(feature = "web")]
pub(crate) mod unnamed_clients;
#[cfg(feature = "web")]
pub mod web;
