//! Rate limits for async functions, written as attributes, decided in Redis or in process.

pub use ratelimit_macros::{count_limit, funnel_limit, rate_limit, window_limit};
pub use ratelimit_runtime::{
    Decision, Error, FixedWindow, IntoKey, InvalidPolicy, LeakyBucket, Limited, Limiter, MissingKey,
    NamedCharge, Policy, PolicyDecision, Rate, Registry, RegistryBuilder, RequestContext, SlidingWindow,
    Source, StoreError, TokenBucket, install,
};
#[doc(hidden)]
pub use ratelimit_runtime::{algorithm, private as __private, store};
