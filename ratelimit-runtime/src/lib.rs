//! The runtime of [`ratelimits`](https://docs.rs/ratelimits). Depend on that crate, which re-exports what users need.
//!
//! The modules `algorithm`, `store` and `private` are public for the project's tests, benchmarks and generated code. They
//! are not covered by semantic versioning.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod bounds;
#[cfg(any(feature = "dashboard", feature = "metrics"))]
mod by_policy;
mod call_site;
mod clock;
mod error;
mod key;
mod lazy_box;
mod log;
mod name;
mod on_store_error;
mod parker;
mod policy_id;
mod rate;
mod runtime;
mod source;
#[cfg_attr(ratelimits_loom, path = "sync_loom.rs")]
mod sync;
mod timer;
mod units;

pub mod algorithm;

mod policy;
pub mod store;

mod check;
#[cfg(feature = "overrides")]
#[doc(hidden)]
pub mod overrides;
#[cfg(not(feature = "overrides"))]
#[path = "overrides_disabled.rs"]
mod overrides;
mod policies;
mod policy_handle;

mod acquire;
mod acquired;
mod backend;
mod decide;
mod decision;
mod endpoint;
mod health;
mod most_limited;
mod observer;
mod request;
mod wait_queues;
mod waiter_limit;

mod client_ip;
pub mod context;
#[cfg(feature = "dashboard")]
pub mod dashboard;
mod limiter;
#[cfg(feature = "metrics")]
pub mod metrics;
#[cfg(feature = "web")]
mod record;
mod registry;

#[cfg(feature = "web")]
pub mod web;

#[cfg(test)]
mod property_tests;

#[cfg(all(feature = "overrides", feature = "redis"))]
#[doc(hidden)]
pub mod inspect;
#[cfg(ratelimits_loom)]
#[doc(hidden)]
pub mod models;
#[doc(hidden)]
pub mod private;

pub use check::{CheckError, check};
pub use client_ip::ClientIp;
pub use context::RequestContext;
pub use decision::{Decision, PolicyDecision};
pub use error::{
    Error, InstallError, InvalidClientIp, InvalidPolicy, Limited, MissingKey, StoreError, UnknownPolicy,
};
pub use health::StoreHealth;
pub use key::IntoKey;
pub use limiter::{Limiter, NamedCharge};
pub use most_limited::{LimitedKey, MostLimited};
pub use observer::{CallOutcome, Observation, Quota};
pub use on_store_error::OnStoreError;
#[cfg(feature = "overrides")]
pub use overrides::Override;
pub use policies::{PolicyInfo, policies};
#[doc(hidden)]
pub use policy::ArgumentValue;
pub use policy::{Algorithm, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};
pub use policy_handle::{PolicyHandle, Usage};
pub use rate::Rate;
pub use registry::{Registry, RegistryBuilder, install};
pub use source::Source;
