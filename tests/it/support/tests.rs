//! Tests of the servers and the proxy, apart from them because other packages share these.

mod cluster;
mod proxy;
mod sentinels;
mod server;
