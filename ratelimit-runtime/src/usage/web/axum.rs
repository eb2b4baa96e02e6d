//! Errors as responses of axum.

use axum::response::{IntoResponse, Response};

use super::response::response;
use crate::decide::error::Error;

/// A problem document, with the status and headers of the table [here](crate::web).
///
/// ```
/// use axum::response::IntoResponse;
/// use ratelimits::{Registry, TokenBucket};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(1).burst(1))?;
/// reports.try_acquire("tenant-7").await?;
/// let response = reports.try_acquire("tenant-7").await.unwrap_err().into_response();
/// assert_eq!((response.status().as_u16(), &response.headers()["retry-after"]), (429, &"1".parse().unwrap()));
/// # Ok(()) }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "axum")))]
impl IntoResponse for Error {
    fn into_response(self) -> Response {
        response(&self).map(axum::body::Body::from)
    }
}
