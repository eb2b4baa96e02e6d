//! Errors as responses of actix-web.

use actix_web::http::StatusCode;
use actix_web::http::header::RETRY_AFTER;
use actix_web::{HttpResponse, ResponseError};

use super::refusal::{PROBLEM_JSON, Refusal};
use crate::decide::error::Error;

/// A problem document, with the status and headers of the table [here](crate::web).
///
/// ```
/// use actix_web::{HttpResponse, http::header::RETRY_AFTER};
/// use ratelimits::{Registry, TokenBucket};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), ratelimits::Error> {
/// let reports = Registry::in_memory().limiter("reports", TokenBucket::per_second(1).burst(1))?;
/// reports.try_acquire("tenant-7").await?;
/// let response = HttpResponse::from_error(reports.try_acquire("tenant-7").await.unwrap_err());
/// assert_eq!(response.status(), 429);
/// assert_eq!(response.headers().get(RETRY_AFTER).unwrap(), "1");
/// # Ok(()) }
/// ```
#[cfg_attr(docsrs, doc(cfg(feature = "actix")))]
impl ResponseError for Error {
    fn status_code(&self) -> StatusCode {
        status(&Refusal::of(self))
    }

    fn error_response(&self) -> HttpResponse {
        let refusal = Refusal::of(self);
        let mut response = HttpResponse::build(status(&refusal));
        response.content_type(PROBLEM_JSON);
        if let Some(seconds) = refusal.retry_after {
            response.insert_header((RETRY_AFTER, seconds));
        }
        response.body(refusal.problem)
    }
}

fn status(refusal: &Refusal) -> StatusCode {
    StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
}
