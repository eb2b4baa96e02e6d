//! Errors as statuses of gRPC.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::request::Parts;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, QuotaViolation, StatusExt};

use super::refusal::{message, refusing, shown};
use crate::decide::decision::PolicyDecision;
use crate::decide::error::{Error, Limited};
use crate::key::missing_key::MissingKey;
use crate::usage::context;

/// The key that gRFC A6 gives to when a client retries.
const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// A status with the code of the table [here](crate::web). The error is its source, which clients do not see.
///
/// If the call was limited, `grpc-status-details-bin` has a `google.rpc.QuotaFailure`, with a violation for each policy that refuses:
/// its name, and its limit and algorithm, but no key. Unless the cost can never fit, or it is unknown when it will, it also has a
/// `google.rpc.RetryInfo`.
///
/// The trailer `grpc-retry-pushback-ms` tells client libraries that retry by themselves when to do so (gRFC A6): in whole
/// milliseconds, rounded up. It is `-1`, so that they do not retry, if the error [is
/// unsatisfiable](crate::Error::is_unsatisfiable), or the time is more than the 24 days that the trailer can tell. If the store
/// failed, or a concurrency limit refuses, there is none, and clients retry as they are configured.
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
/// let violations = status.get_details_quota_failure().unwrap().violations;
/// assert_eq!(violations[0].description, "Exceeds a limit of 1 (token bucket)");
/// assert!(status.metadata().contains_key("grpc-retry-pushback-ms"));
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
        let mut status = match &error {
            Error::Limited(limited) => Status::with_error_details(code, message, details(limited, &error)),
            _ => Status::new(code, message),
        };
        if let Some(millis) = pushback(&error) {
            status.metadata_mut().insert(PUSHBACK, millis.into());
        }
        status.set_source(Arc::new(error));
        status
    }
}

fn details(limited: &Limited, error: &Error) -> ErrorDetails {
    let violation = |policy: &PolicyDecision| {
        let description = format!("Exceeds a limit of {} ({})", policy.limit, policy.algorithm);
        QuotaViolation::new(shown(&policy.policy), description)
    };
    let violations: Vec<_> = refusing(limited).map(violation).collect();
    let mut details = ErrorDetails::with_quota_failure(violations);
    if let Some(wait) = told(error) {
        details.set_retry_info(Some(wait));
    }
    details
}

/// Returns after how long the client is told to come back.
fn told(error: &Error) -> Option<Duration> {
    error.retry_after().map(|wait| wait + context::spread_of(wait))
}

/// Returns after how many milliseconds clients are to retry by themselves; negative if they are not to, and `None` if that is up to
/// them.
fn pushback(error: &Error) -> Option<i32> {
    let Some(wait) = told(error) else { return error.is_unsatisfiable().then_some(-1) };
    let millis = wait.as_nanos().div_ceil(1_000_000);
    // A smaller number would be too early.
    Some(millis.try_into().unwrap_or(-1))
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
