//! The application that the limited functions of the tests belong to.

use std::fmt::Debug;
use std::future::Future;

use ratelimits::Registry;

/// An application's error, as users write one.
#[derive(Debug)]
pub(crate) enum AppError {
    Refused(ratelimits::Error),
    Parse,
}

impl From<ratelimits::Error> for AppError {
    fn from(error: ratelimits::Error) -> Self {
        AppError::Refused(error)
    }
}

impl From<std::num::ParseIntError> for AppError {
    fn from(_: std::num::ParseIntError) -> Self {
        AppError::Parse
    }
}

pub(crate) type AppResult<T> = Result<T, AppError>;

/// Runs a test with limits of its own.
pub(crate) fn alone<T>(test: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Registry::in_memory().scope(test))
}

#[track_caller]
pub(crate) fn assert_limited<T: Debug>(result: AppResult<T>) {
    match result {
        Err(AppError::Refused(error)) if error.is_limited() => {}
        other => panic!("not limited: {other:?}"),
    }
}
