//! What becomes of calls that Redis does not decide.

mod attributes;
mod limiters;
mod trouble;
mod waiting;

use std::time::Duration;

use ratelimits::{Decision, Error, OnStoreError, Registry, RegistryBuilder, Source};

const DAY: Duration = Duration::from_secs(86_400);

/// Where nobody listens.
const NOBODY: &str = "redis://127.0.0.1:1";

/// On a Redis that is absent.
fn absent(builder: RegistryBuilder) -> Registry {
    builder.connect_lazy(NOBODY).expect("the URL is right")
}

/// On a Redis that is absent, where this is what becomes of calls.
fn absent_and(on_store_error: OnStoreError) -> Registry {
    absent(Registry::builder().on_store_error(on_store_error))
}

#[track_caller]
fn assert_store(result: Result<impl std::fmt::Debug, Error>) {
    assert!(matches!(result, Err(Error::Store(_))), "{result:?}");
}

/// The numbers of a decision that was made by the share of this process.
#[track_caller]
fn local(result: Result<Decision, Error>) -> (u64, u64) {
    let decision = result.expect("it is admitted");
    assert_eq!(decision.source, Source::Local);
    (decision.limit, decision.remaining)
}
