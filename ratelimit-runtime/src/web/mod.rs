//! Limits in web services: a layer that tells the functions below it who is calling, and refusals as responses.
//!
//! [`RateLimitLayer`] is a layer for axum, tonic, hyper and everything else on `tower`. It puts each request in a
//! [`RequestContext`](crate::RequestContext), so that `key_type = IP`, `key_type = USER` and `<@ip>` work in every annotated
//! function below it, however deep. With the feature `axum`, [`Error`](crate::Error) is a response. [`RateLimitHeaders`] tells
//! clients on every response what they have left.
//!
//! For actix-web, [`RateLimitMiddleware`] does the same with the feature `actix`, which makes [`Error`](crate::Error) a
//! `ResponseError`.
//!
//! | error | status | body |
//! | --- | --- | --- |
//! | limited | 429 with `Retry-After`, in whole seconds, rounded up | a problem of the type `quota-exceeded` |
//! | the cost can never fit | 413 | a problem without a type |
//! | the store failed | 503 | a problem of the type `temporary-reduced-capacity` |
//! | a part of the key is missing | 400; without a user 403; without an address 500 | a problem without a type |
//! | the policy is invalid | 500 | a problem without a type |
//!
//! Bodies are `application/problem+json` (RFC 9457), with the types of draft-ietf-httpapi-ratelimit-headers-11. They name the
//! violated policies by the names given in attributes and to limiters. A policy without a name is `default`, as its own name would
//! tell clients about the program's modules.

#[cfg(feature = "actix")]
mod actix;
#[cfg(feature = "axum")]
mod axum;
#[cfg(feature = "tower")]
mod body;
mod headers;
#[cfg(feature = "tower")]
mod layer;
mod message;
#[cfg(feature = "actix")]
mod middleware;
mod options;
#[cfg(feature = "tower")]
mod peer;
mod refusal;
#[cfg(feature = "tower")]
mod response;
#[cfg(feature = "actix")]
mod scoped_body;

#[cfg(feature = "tower")]
pub use body::RateLimitBody;
pub use headers::{HeaderFormat, RateLimitHeaders};
#[cfg(feature = "tower")]
pub use layer::{RateLimitLayer, RateLimitService};
#[cfg(feature = "actix")]
pub use middleware::{RateLimitMiddleware, RateLimitMiddlewareService};
#[cfg(feature = "tower")]
pub use peer::PeerAddr;
#[cfg(feature = "actix")]
pub use scoped_body::ScopedBody;
