//! Errors as statuses of gRPC.

use std::sync::Arc;

use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt};

use super::refusal::message;
use crate::decide::error::Error;
use crate::key::missing_key::MissingKey;

/// A status with the code of the table [here](crate::web). If the call was limited, `grpc-status-details-bin` has a
/// `google.rpc.RetryInfo`. The error is its source, which clients do not see.
///
/// So the methods of a service can be annotated, and `?` takes the errors of the functions they call.
///
/// ```
/// use ratelimits::rate_limit;
/// use tonic::{Code, Request, Response, Status};
/// use tonic_types::StatusExt;
///
/// #[rate_limit("10/min", burst = 1)]
/// async fn search(request: Request<String>) -> Result<Response<String>, Status> {
///     Ok(Response::new("found".into()))
/// }
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Status> {
/// search(Request::new("rust".into())).await?;
/// let status = search(Request::new("rust".into())).await.unwrap_err();
/// assert_eq!(status.code(), Code::ResourceExhausted);
/// assert!(status.get_details_retry_info().unwrap().retry_delay.is_some());
/// # Ok(()) }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "tonic")))]
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        let code = match error {
            Error::Limited(_) => Code::ResourceExhausted,
            Error::Store(_) => Code::Unavailable,
            Error::MissingKey(MissingKey::Part) => Code::InvalidArgument,
            Error::MissingKey(MissingKey::User) => Code::PermissionDenied,
            Error::MissingKey(MissingKey::Ip) | Error::Invalid(_) => Code::Internal,
        };
        let message = message(&error);
        let mut status = match error.retry_after() {
            Some(wait) => {
                Status::with_error_details(code, message, ErrorDetails::with_retry_info(Some(wait)))
            }
            None => Status::new(code, message),
        };
        status.set_source(Arc::new(error));
        status
    }
}

/// Returns the content type of a gRPC request, which is always a POST: caches must not keep a refusal with the status 200.
pub(super) fn content_type(request: &Parts) -> Option<&HeaderValue> {
    let kind = request.headers.get(CONTENT_TYPE).filter(|_| request.method == Method::POST)?;
    kind.as_bytes().starts_with(b"application/grpc").then_some(kind)
}

/// Returns a response without a body, whose headers are the status. It has the content type of the request, as gRPC-Web has its own.
pub(super) fn response(error: Error, content_type: HeaderValue) -> http::Response<String> {
    let mut response = Status::from(error).into_http::<String>();
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
