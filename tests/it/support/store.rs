//! Decisions on a Redis store without a registry.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use ratelimit_runtime::store::{Charge, Key, RedisStore, Store};
use ratelimits::{FixedWindow, Policy};

/// A store that connects with the first decision.
pub(crate) fn store(url: &str) -> Store {
    store_by(url, |store| store)
}

pub(crate) fn store_with_deadline(url: &str, deadline: Duration) -> Store {
    store_by(url, |store| store.with_deadline(deadline))
}

/// Such a store, with a change.
pub(crate) fn store_by(url: &str, change: impl FnOnce(RedisStore) -> RedisStore) -> Store {
    Store::Redis(Arc::new(change(RedisStore::lazy(url).expect("the URL is valid"))))
}

/// One permit of a day's window.
pub(crate) fn charge(key: &str, limit: u64) -> Charge {
    let policy = Policy::from(FixedWindow::new(limit, Duration::from_secs(86_400)));
    let spec = policy.spec().expect("the policy is valid");
    Charge { key: Key::raw(key), spec, cost: 1, wait: 0, shadow: false }
}

/// Decides on one charge and returns what remains, `None` if it is refused, or the error with its causes.
pub(crate) async fn decide(store: &Store, charge: &Charge) -> Result<Option<u64>, String> {
    let outcome = store.decide(std::slice::from_ref(charge)).await;
    let outcome = outcome.map_err(|error| chain(&error))?;
    Ok(outcome.admitted.then(|| outcome.verdicts[0].remaining))
}

/// An error and all its causes.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}
