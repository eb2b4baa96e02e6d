//! Tests of the servers, apart from them because the tests of `ratelimits-cli` share these.

mod cluster;
mod sentinels;
mod server;
