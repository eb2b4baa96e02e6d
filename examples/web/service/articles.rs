//! Reads by address, searches by plan, and uploads by size.

use std::time::Duration;

use axum::Extension;
use axum::body::Bytes;
use axum::extract::{Path, RawQuery};
use ratelimits::{Error, Rate, rate_limit};

use crate::accounts::Session;

/// Public, so it counts by address.
#[rate_limit("60/min", burst = 20, name = "reads", key_type = IP)]
pub(crate) async fn read(Path(id): Path<u64>) -> Result<String, Error> {
    Ok(format!("article {id}\n"))
}

/// As often as the user's plan allows.
#[rate_limit(
    rate = per_minute(session.searches_per_minute),
    burst = session.searches_per_minute,
    name = "searches",
    key = session.user
)]
pub(crate) async fn search(
    Extension(session): Extension<Session>,
    RawQuery(words): RawQuery,
) -> Result<String, Error> {
    Ok(format!("{} finds nothing about {}\n", session.user, words.unwrap_or_default()))
}

fn per_minute(permits: u32) -> Rate {
    Rate::new(permits.into(), Duration::from_secs(60))
}

/// 100 kB per second and user, up to 500 kB at once. A file that is larger than that never passes.
#[rate_limit(rate = 100, burst = 500, name = "uploads", key_type = USER, cost = file.len().div_ceil(1000))]
pub(crate) async fn upload(file: Bytes) -> Result<String, Error> {
    Ok(format!("{} bytes\n", file.len()))
}
