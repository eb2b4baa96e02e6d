//! What `on_store_error` makes of calls that Redis does not decide.

mod attributes;
mod flapping;
mod limiters;
mod outage;
mod waiting;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ratelimits::{DecidedBy, Decision, Error, OnStoreError, Registry, RegistryBuilder};

const DAY: Duration = Duration::from_secs(86_400);

/// Nothing listens here.
const ABSENT: &str = "redis://127.0.0.1:1";

/// A registry on a server that does not exist. Registries with the same URL would notice its absence together.
fn absent(builder: RegistryBuilder) -> Registry {
    static DATABASE: AtomicU64 = AtomicU64::new(0);
    let database = DATABASE.fetch_add(1, Ordering::Relaxed);
    builder.connect_lazy(&format!("{ABSENT}/{database}")).expect("the URL is valid")
}

fn absent_and(on_store_error: OnStoreError) -> Registry {
    absent(Registry::builder().on_store_error(on_store_error))
}

#[track_caller]
fn assert_store_error(result: Result<impl std::fmt::Debug, Error>) {
    assert!(matches!(result, Err(Error::Store(_))), "{result:?}");
}

/// Asserts that a call was admitted in process, with this limit and this many permits remaining.
#[track_caller]
fn assert_local(result: Result<Decision, Error>, limit: u64, remaining: u64) {
    let decision = result.expect("it is admitted");
    let numbers = (decision.source, decision.limit, decision.remaining);
    assert_eq!(numbers, (DecidedBy::Local, limit, remaining));
}
