//! What a refused call returns.

use std::future::{Future, Ready, ready};
use std::pin::Pin;

use crate::error::Error;

/// A return type that a refusal converts into.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot represent a refused call",
    label = "cannot be made from a `ratelimits::Error`",
    note = "return `Result<_, E>` where `E: From<ratelimits::Error>`, or give each attribute a `fallback = …`"
)]
pub trait FromRefusal: Sized {
    /// Converts the refusal into a return value.
    fn from_refusal(error: Error) -> Self;
}

// Not recommended, so that the compiler names the return type and not the bound on its error.
#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> FromRefusal for Result<T, E> {
    fn from_refusal(error: Error) -> Self {
        Err(error.into())
    }
}

/// Converts a refusal into the return type. A function, so that the compiler points at the type it is given.
#[cold]
pub fn refuse<T: FromRefusal>(error: Error) -> T {
    T::from_refusal(error)
}

/// Calls a fallback closure. A function, so that the compiler infers the type of the closure's argument.
#[cold]
pub fn call_fallback<T>(error: Error, fallback: impl FnOnce(Error) -> T) -> T {
    fallback(error)
}

/// Returns whether the output satisfies the condition. A function, so that the compiler infers the type of the closure's
/// argument.
pub fn satisfies<T: ?Sized>(output: &T, condition: impl FnOnce(&T) -> bool) -> bool {
    condition(output)
}

/// A fallback's result, borrowed to find out whether it is a future: method lookup tries [`FutureFallback`] before
/// [`ValueFallback`], which takes one more dereference.
#[derive(Debug)]
pub struct Fallback<'a, T>(pub &'a T);

/// Selects the fallback's result as a future.
#[derive(Clone, Copy, Debug)]
pub struct OfFuture;

/// Selects the fallback's result as a value.
#[derive(Clone, Copy, Debug)]
pub struct OfValue;

/// Implemented by the results of async fallbacks.
pub trait FutureFallback {
    /// Returns how to await the result.
    fn ratelimits_kind(&self) -> OfFuture;
}

impl<F: Future> FutureFallback for &Fallback<'_, F> {
    fn ratelimits_kind(&self) -> OfFuture {
        OfFuture
    }
}

/// Implemented by the results of all fallbacks.
pub trait ValueFallback {
    /// Returns how to await the result.
    fn ratelimits_kind(&self) -> OfValue;
}

impl<T> ValueFallback for Fallback<'_, T> {
    fn ratelimits_kind(&self) -> OfValue {
        OfValue
    }
}

// Both are boxed, so that the future of the limited function grows by a pointer and not by what its fallback holds.
impl OfFuture {
    /// Returns the fallback's future.
    #[cold]
    pub fn ratelimits_answer<F: Future>(self, called: F) -> Pin<Box<F>> {
        Box::pin(called)
    }
}

impl OfValue {
    /// Returns a future of the fallback's value.
    #[cold]
    pub fn ratelimits_answer<T>(self, called: T) -> Pin<Box<Ready<T>>> {
        Box::pin(ready(called))
    }
}
