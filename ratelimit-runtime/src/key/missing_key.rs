//! A key of which a part is missing.

use std::error::Error as StdError;
use std::fmt;

/// A part of the key that the call does not provide.
///
/// Such a call is refused. It never shares a bucket with other calls that lack the same part.
///
/// ```
/// use ratelimits::{Error, rate_limit};
/// use ratelimits::error::MissingKey;
///
/// #[rate_limit(5.0, key_type = IP)]
/// async fn search() -> Result<(), Error> {
///     Ok(())
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let error = search().await.unwrap_err();
/// assert!(matches!(error, Error::MissingKey(MissingKey::Ip)));
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MissingKey {
    /// The client's address, because the call is not in a [`RequestContext`](crate::RequestContext) that has one.
    Ip,
    /// The user, because the call is not in a [`RequestContext`](crate::RequestContext) that has one that is not blank.
    User,
    /// A part that is `None`, or whose `Display` implementation failed.
    Part,
}

/// How web services provide the address, which most programs with these features are.
const LAYER: &str = if cfg!(feature = "tower") {
    "add `.layer(RateLimitLayer::new())` below the routes, or "
} else if cfg!(feature = "actix") {
    "wrap the `App` with `RateLimitMiddleware::new()`, or "
} else {
    ""
};

impl fmt::Display for MissingKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingKey::Ip => write!(
                f,
                "no client address to use as the key; {LAYER}run the call inside \
                 `RequestContext::new().with_ip(address).scope(…)`, and check that trusted proxies send the header that \
                 `ClientIp` reads"
            ),
            MissingKey::User => f.write_str(
                "no user to use as the key; run the call inside `RequestContext::new().with_user(user).scope(…)`",
            ),
            MissingKey::Part => f.write_str("a part of the key is `None`, or could not be formatted"),
        }
    }
}

impl StdError for MissingKey {}
