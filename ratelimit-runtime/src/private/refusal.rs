//! What a refused call returns.

use std::future::{Future, Ready, ready};
use std::pin::Pin;

use crate::error::Error;

/// A return type that can say that the call was refused.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot say that a call was refused",
    label = "no `ratelimits::Error` turns into this return type",
    note = "return `Result<_, E>` where `E: From<ratelimits::Error>`, or give each attribute a `fallback = …`"
)]
pub trait FromRefusal: Sized {
    /// The refusal as a return value.
    fn from_refusal(error: Error) -> Self;
}

// Not recommended, so that the compiler names the return type and not the bound on its error.
#[diagnostic::do_not_recommend]
impl<T, E: From<Error>> FromRefusal for Result<T, E> {
    fn from_refusal(error: Error) -> Self {
        Err(error.into())
    }
}

/// Turns a refusal into a return type. A function, so that the compiler points at the type it is given.
#[cold]
pub fn refuse<T: FromRefusal>(error: Error) -> T {
    T::from_refusal(error)
}

/// Asks a closure for its answer. A function, so that the compiler knows the type of the closure's argument.
#[cold]
pub fn call_fallback<T>(error: Error, fallback: impl FnOnce(Error) -> T) -> T {
    fallback(error)
}

/// Whether the output satisfies the condition. A function, so that the compiler knows the type of the closure's argument.
pub fn satisfies<T: ?Sized>(output: &T, condition: impl FnOnce(&T) -> bool) -> bool {
    condition(output)
}

/// What a fallback returned, borrowed to ask whether it is a future: method lookup finds [`FutureFallback`] before
/// [`ValueFallback`], since it needs one reference less taken off.
#[derive(Debug)]
pub struct Fallback<'a, T>(pub &'a T);

/// A fallback that returned a future.
#[derive(Clone, Copy, Debug)]
pub struct OfFuture;

/// A fallback that returned its value.
#[derive(Clone, Copy, Debug)]
pub struct OfValue;

/// Finds fallbacks that are async.
pub trait FutureFallback {
    /// How to answer with it.
    fn ratelimits_kind(&self) -> OfFuture;
}

impl<F: Future> FutureFallback for &Fallback<'_, F> {
    fn ratelimits_kind(&self) -> OfFuture {
        OfFuture
    }
}

/// Finds all other fallbacks.
pub trait ValueFallback {
    /// How to answer with it.
    fn ratelimits_kind(&self) -> OfValue;
}

impl<T> ValueFallback for Fallback<'_, T> {
    fn ratelimits_kind(&self) -> OfValue {
        OfValue
    }
}

// Both answers are boxed: the future of the limited function has room for a pointer more, not for all that its fallback
// holds or returns.
impl OfFuture {
    /// The fallback's future.
    #[cold]
    pub fn ratelimits_answer<F: Future>(self, called: F) -> Pin<Box<F>> {
        Box::pin(called)
    }
}

impl OfValue {
    /// The fallback's value, to be awaited like a future.
    #[cold]
    pub fn ratelimits_answer<T>(self, called: T) -> Pin<Box<Ready<T>>> {
        Box::pin(ready(called))
    }
}
