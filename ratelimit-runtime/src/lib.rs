//! The runtime of [`ratelimits`](https://docs.rs/ratelimits). Depend on that crate, which re-exports what users need.
//!
//! It has eight floors, each of which imports only from those before it: `base`, `key`, `algorithm`, `policy`, `store`, `decide`,
//! `observe` and `usage`.
//!
//! The modules `algorithm`, `store` and `private` are public for the project's tests, benchmarks and generated code. They
//! are not covered by semantic versioning.
#![cfg_attr(docsrs, feature(doc_cfg))]

#[doc(hidden)]
pub mod algorithm;
mod base;
mod decide;
mod key;
mod observe;
mod policy;
#[doc(hidden)]
pub mod store;
mod usage;

#[doc(hidden)]
pub use base::calendar::Calendar;
#[cfg(feature = "calendar")]
pub use base::calendar::CalendarPeriod;
pub use base::invalid_policy::InvalidPolicy;
pub use base::rate::Rate;
pub use decide::decision::{Decision, PolicyDecision};
pub use decide::error::{Error, Limited};
pub use decide::health::StoreHealth;
pub use decide::observation::{CallOutcome, Observation, Quota};
pub use decide::on_store_error::OnStoreError;
#[cfg(feature = "overrides")]
#[doc(hidden)]
pub use decide::overrides;
pub use key::IntoKey;
pub use key::missing_key::MissingKey;
pub use observe::most_limited::{LimitedKey, MostLimited};
pub use observe::suggestions::Suggestions;
pub use observe::suggestions::suggestion::{NoSuggestion, SmallestNumbers, Suggestion};
pub use policy::{Algorithm, ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
#[doc(hidden)]
pub use policy::{ArgumentValue, BucketPromise, Promise};
pub use store::decided_by::DecidedBy;
pub use store::error::StoreError;
#[cfg(ratelimits_loom)]
#[doc(hidden)]
pub use store::models;
pub use usage::check::{CheckError, check_policies};
pub use usage::client_ip::ClientIp;
pub use usage::client_ip::invalid_client_ip::InvalidClientIp;
pub use usage::context::RequestContext;
#[cfg(feature = "dashboard")]
pub use usage::dashboard;
#[cfg(all(feature = "overrides", feature = "redis"))]
#[doc(hidden)]
pub use usage::inspect;
pub use usage::limiter::{Charge, Limiter};
#[cfg(feature = "metrics")]
pub use usage::metrics;
pub use usage::policies::{PolicyInfo, policies};
pub use usage::policy_handle::{PolicyHandle, Usage};
#[doc(hidden)]
pub use usage::private;
pub use usage::registry::install_error::InstallError;
#[cfg(feature = "overrides")]
pub use usage::registry::overrides::Override;
pub use usage::registry::{Registry, RegistryBuilder, install};
#[cfg(feature = "http")]
pub use usage::retry_after::retry_after;
pub use usage::unknown_policy::UnknownPolicy;
#[cfg(feature = "web")]
pub use usage::web;
