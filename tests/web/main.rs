//! Limits in web services, over sockets.

mod actix;
mod axum;
mod browser;
mod client;
mod client_ip;
mod concurrency;
mod dashboard;
mod events;
mod headers;
mod hyper;
mod layer;
#[expect(dead_code, reason = "used in part")]
#[path = "../it/support/log_capture.rs"]
mod log_capture;
mod readme;
mod registry;
mod service;
mod shared;
mod spread;
mod statuses;
mod tonic;
mod tower;

/// Those of the other tests.
#[path = "../it/support"]
#[allow(dead_code, reason = "these tests use some of what they share")]
mod support {
    pub(crate) mod server;
    pub(crate) mod until;
}
