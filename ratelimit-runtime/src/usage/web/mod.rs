//! Limits in web services: a layer that tells the functions below it who is calling, and refusals as responses.
//!
//! [`RateLimitLayer`] is a layer for axum, tonic, hyper and everything else on `tower`. It puts each request in a
//! [`RequestContext`](crate::RequestContext), so that `key_type = IP`, `key_type = USER` and `<@ip>` work in every annotated
//! function below it, however deep. [`RateLimitHeaders`] tells clients on every response what they have left.
//!
//! For actix-web, [`RateLimitMiddleware`] does the same with the feature `actix`.
//!
//! [`Error`](crate::Error) is a response of axum with the feature `axum`, a `ResponseError` of actix-web with the feature `actix`,
//! and becomes a `tonic::Status` with the feature `tonic`. For other frameworks, [`response()`] returns a response of the `http`
//! crate.
//!
//! With tonic, serve `Server::builder().layer(RateLimitLayer::new())`. The feature `tonic` enables tonic's `server`, which has the
//! addresses of connections, and a program that has a TLS feature of tonic needs nothing else to find those of TLS connections.
//!
//! | error | status | body | code of gRPC |
//! | --- | --- | --- | --- |
//! | limited | 429 with `Retry-After`, in whole seconds, rounded up | a problem of the type `quota-exceeded` | `RESOURCE_EXHAUSTED` with `google.rpc.RetryInfo`, not rounded, and `google.rpc.QuotaFailure` |
//! | the cost can never fit | 413 | a problem without a type | `RESOURCE_EXHAUSTED` with `google.rpc.QuotaFailure` |
//! | the store failed | 503 | a problem of the type `temporary-reduced-capacity` | `UNAVAILABLE` |
//! | a part of the key is missing | 400 | a problem without a type | `INVALID_ARGUMENT` |
//! | there is no user | 403 | a problem without a type | `PERMISSION_DENIED` |
//! | there is no address | 500 | a problem without a type | `INTERNAL` |
//! | the policy is invalid | 500 | a problem without a type | `INTERNAL` |
//!
//! Statuses of gRPC also have the trailer `grpc-retry-pushback-ms`, for clients that retry by themselves: when, in whole
//! milliseconds, rounded up, or `-1` where no retry can help. It is missing if the store failed.
//!
//! It is unknown when the calls of a [`ConcurrencyLimit`](crate::ConcurrencyLimit) end, so a refusal by one has no `Retry-After`, no
//! `RetryInfo` and no such trailer. Neither has that of a key which an override blocks without an end.
//!
//! Clients that are refused until the same instant come back together, unless the layer has a [`spread`](RateLimitLayer::spread).
//!
//! Bodies are `application/problem+json` (RFC 9457), with the types of draft-ietf-httpapi-ratelimit-headers-11. They, and the messages
//! and details of gRPC, name the violated policies by the names given in attributes and to limiters. A policy without a name is
//! `default`, as its own name would tell clients about the program's modules. So is one whose name contains `::`, such as
//! `name = "auth::wrong-passwords"`, or anything but printable ASCII.

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
#[cfg(feature = "tonic")]
mod tonic;

#[cfg(feature = "tower")]
pub use body::RateLimitBody;
pub use headers::{HeaderFormat, RateLimitHeaders};
#[cfg(feature = "tower")]
pub use layer::{RateLimitLayer, RateLimitService};
#[cfg(feature = "actix")]
pub use middleware::{RateLimitMiddleware, RateLimitMiddlewareService};
#[cfg(feature = "tower")]
pub use peer::PeerAddr;
#[cfg(feature = "tower")]
pub use response::response;
#[cfg(feature = "actix")]
pub use scoped_body::ScopedBody;
