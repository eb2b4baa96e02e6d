//! What `on_store_error` makes of calls that Redis does not decide.

mod attributes;
mod flapping;
mod limiters;
mod outage;
mod waiting;

use std::time::Duration;

use ratelimits::{Decision, Error, OnStoreError, Registry, RegistryBuilder, Source};

const DAY: Duration = Duration::from_secs(86_400);

/// Nothing listens here.
const ABSENT: &str = "redis://127.0.0.1:1";

fn absent(builder: RegistryBuilder) -> Registry {
    builder.connect_lazy(ABSENT).expect("the URL is valid")
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
    assert_eq!(numbers, (Source::Local, limit, remaining));
}
