//! A refusal as a response of the `http` crate.

use http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};

use super::refusal::{PROBLEM_JSON, Refusal};
use crate::error::Error;

/// Returns the response about a call that did not go ahead.
pub(super) fn response(error: &Error) -> Response<String> {
    let Refusal { status, retry_after, problem } = Refusal::of(error);
    let mut response = Response::new(problem);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
    if let Some(seconds) = retry_after {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}
