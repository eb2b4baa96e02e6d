//! A refusal as a response of the `http` crate.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::request::Parts;
use http::{Response, StatusCode};

use super::refusal::{PROBLEM_JSON, Refusal};
#[cfg(feature = "tonic")]
use super::tonic;
use crate::decide::error::Error;

/// Returns the response about a call that did not go ahead, for hyper and frameworks on the `http` crate: a problem document, with
/// the status and headers of the table [here](crate::web).
///
/// `map` gives it the body that the server wants, such as `response(&error).map(Full::from)`.
///
/// ```
/// use http::Response;
/// use ratelimits::{Error, count_limit, web};
///
/// #[count_limit(1, "1h")]
/// async fn report() -> Result<String, Error> {
///     Ok("done".into())
/// }
///
/// async fn answer() -> Response<Vec<u8>> {
///     match report().await {
///         Ok(text) => Response::new(text.into()),
///         Err(error) => web::response(&error).map(Vec::from),
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// assert_eq!(answer().await.status(), 200);
/// assert_eq!(answer().await.status(), 429);
/// # }
/// ```
#[must_use]
pub fn response(error: &Error) -> Response<String> {
    let Refusal { status, retry_after, problem } = Refusal::of(error);
    let mut response = Response::new(problem);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

/// Returns the response to a request, in its protocol.
#[cfg_attr(not(feature = "tonic"), expect(unused_variables))]
pub(super) fn response_to(request: &Parts, error: Error) -> Response<String> {
    #[cfg(feature = "tonic")]
    if let Some(content_type) = tonic::content_type(request) {
        return tonic::response(error, content_type.clone());
    }
    response(&error)
}
