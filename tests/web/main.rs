//! Limits in web services, over sockets.

mod axum;
mod client;
mod client_ip;
mod headers;
mod layer;
mod readme;
mod registry;
mod service;
