//! What the limited functions of the tests share: an application's error, and a registry for each test.

use std::fmt::Debug;
use std::future::Future;
use std::pin::Pin;

use ratelimits::Registry;

/// An error type as an application defines one.
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

impl AppError {
    pub(crate) fn is_limited(&self) -> bool {
        matches!(self, AppError::Refused(error) if error.is_limited())
    }
}

/// Runs a test on an in-memory registry that no other test uses.
pub(crate) fn isolated<T>(test: impl Future<Output = T>) -> T {
    let mut output = None;
    run(Box::pin(async {
        output = Some(test.await);
    }));
    output.unwrap()
}

/// Compiled once, and not for each test.
fn run(test: Pin<Box<dyn Future<Output = ()> + '_>>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(Registry::in_memory().scope(test));
}

#[track_caller]
pub(crate) fn assert_limited<T: Debug>(result: AppResult<T>) {
    match result {
        Err(error) if error.is_limited() => {}
        other => panic!("not limited: {other:?}"),
    }
}

/// Makes each call twice: the first must return `Ok`, with this output if one is given, and the second must be limited.
macro_rules! assert_admits_one {
    ($($call:expr $(=> $output:expr)?),+ $(,)?) => {{$(
        let _output = $call.await.unwrap();
        $(assert_eq!(_output, $output);)?
        assert!($call.await.unwrap_err().is_limited(), "{}", stringify!($call));
    )+}};
}

/// Makes each call twice and compares the outputs: the body's, then the fallback's.
macro_rules! assert_outputs {
    ($($call:expr => $body:expr, $fallback:expr);+ $(;)?) => {{$(
        assert_eq!($call.await, $body);
        assert_eq!($call.await, $fallback);
    )+}};
}

pub(crate) use {assert_admits_one, assert_outputs};
