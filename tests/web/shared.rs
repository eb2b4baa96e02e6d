//! What the tests of all frameworks call.

use std::time::Duration;

use axum::http::request::Parts;
use ratelimits::error::MissingKey;
use ratelimits::{Error, FixedWindow, Limiter, OnStoreError, Policy, Registry, TokenBucket, count_limit};

use crate::client::Client;

#[count_limit(2, "1h", name = "shared-by-address", key = "<framework>:<@ip>")]
pub(crate) async fn by_address(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

#[count_limit(2, "1h", name = "shared-by-user", key = "<framework>:<@user>")]
pub(crate) async fn by_user(framework: &str) -> Result<String, Error> {
    Ok("done".into())
}

/// The users of the tests say who they are.
pub(crate) fn user_of(request: &Parts) -> Option<String> {
    Some(request.headers.get("x-user")?.to_str().ok()?.to_owned())
}

/// Asserts that a server limits `/address`, which calls [`by_address`], and `/user`, which calls [`by_user`].
pub(crate) async fn assert_limited(client: Client) {
    for (path, lines) in
        [("/address", [].as_slice()), ("/user", &["x-user: ann"]), ("/user", &["x-user: bob"])]
    {
        for _ in 0..2 {
            let admitted = client.get(path, lines).await;
            assert_eq!((admitted.status, admitted.body.as_str()), (200, "done"), "{path} {lines:?}");
        }
        let limited = client.get(path, lines).await;
        assert_eq!(limited.status, 429, "{path} {lines:?}");
        assert_eq!(limited.header("content-type"), Some("application/problem+json"));
        assert!(limited.header("retry-after").is_some() && limited.body.contains("quota-exceeded"));
    }
    assert_eq!(client.get("/user", &[]).await.status, 403);
}

/// Returns a limiter that admits one call an hour.
pub(crate) fn once(name: &str) -> Limiter {
    Registry::in_memory().limiter(name, FixedWindow::new(1, Duration::from_secs(3600))).unwrap()
}

/// Returns one error of each kind that is not [`Error::Limited`]: a failed store, an invalid policy, and keys without an address,
/// a user and a part.
pub(crate) async fn other_errors(framework: &str) -> [Error; 5] {
    let nowhere = Registry::builder().on_store_error(OnStoreError::Deny);
    let registry = nowhere.connect_lazy("redis://127.0.0.1:1").unwrap();
    let limiter = registry.limiter(&format!("{framework}-nowhere"), TokenBucket::per_second(1)).unwrap();
    let failed = limiter.try_acquire(()).await.unwrap_err();
    let zero: Policy = TokenBucket::per_second(1).burst(0).into();
    let invalid = registry.limiter(&format!("{framework}-invalid"), zero).unwrap_err();
    [failed, invalid, MissingKey::Ip.into(), MissingKey::User.into(), MissingKey::Part.into()]
}
