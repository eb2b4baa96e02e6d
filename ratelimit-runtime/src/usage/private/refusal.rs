//! What a refused call returns.

use std::future::{Future, Pending};
use std::marker::PhantomData;
use std::ops::ControlFlow;
use std::pin::Pin;

use super::charged::Refusal;
use crate::decide::error::Error;

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
#[inline]
pub fn refuse<T: FromRefusal>(refusal: Refusal) -> T {
    T::from_refusal(refusal.into_error())
}

/// A return type that a refusal converts into, for an attribute without a fallback among some that have one.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot represent a refused call",
    label = "this attribute has no fallback",
    note = "return `Result<_, E>` where `E: From<ratelimits::Error>`, or give each attribute a `fallback = …`"
)]
pub trait FromRefusalBesideFallback: FromRefusal {}

#[diagnostic::do_not_recommend]
impl<T: FromRefusal> FromRefusalBesideFallback for T {}

/// Converts a refusal into the return type. The compiler points at the attribute.
#[inline]
pub fn refuse_beside_fallback<T: FromRefusalBesideFallback>(refusal: Refusal) -> T {
    T::from_refusal(refusal.into_error())
}

/// Calls a fallback closure. A function, so that the compiler infers the type of the closure's argument.
#[cold]
pub fn call_fallback<T>(error: Error, fallback: impl FnOnce(Error) -> T) -> T {
    fallback(error)
}

/// The type of a fallback's result, and of the function's. Method lookup tries [`OutputFallback`], then [`FutureFallback`], and
/// then [`ValueFallback`], each of which takes one more dereference.
#[derive(Debug)]
pub struct Fallback<'a, T, R>(PhantomData<&'a T>, PhantomData<fn() -> R>);

impl<'a, T, R> Fallback<'a, T, R> {
    /// Borrows the result of a fallback of a function that returns `R`.
    #[must_use]
    pub const fn of(_result: &'a T) -> Self {
        Fallback(PhantomData, PhantomData)
    }
}

/// The type `!`, which has no name in stable Rust.
pub type Never = <fn() -> ! as Returns>::Output;

/// Names the return type of a function.
#[doc(hidden)]
pub trait Returns {
    /// The return type.
    type Output;
}

impl<T> Returns for fn() -> T {
    type Output = T;
}

/// Selects the fallback's result as a future.
#[derive(Clone, Copy, Debug)]
pub struct OfFuture;

/// Selects the fallback's result as a value.
#[derive(Clone, Copy, Debug)]
pub struct OfValue;

/// Implemented by results of the function's own type, and so by those of unknown type: that of a fallback that never returns, or
/// of a generic one. It becomes the function's.
pub trait OutputFallback {
    /// Returns how to return the result.
    fn ratelimits_kind(&self) -> OfValue;
}

impl<R> OutputFallback for &&Fallback<'_, R, R> {
    fn ratelimits_kind(&self) -> OfValue {
        OfValue
    }
}

/// Implemented by the results of async fallbacks.
pub trait FutureFallback {
    /// Returns how to return the result.
    fn ratelimits_kind(&self) -> OfFuture;
}

impl<F: Future, R> FutureFallback for &Fallback<'_, F, R> {
    fn ratelimits_kind(&self) -> OfFuture {
        OfFuture
    }
}

/// A fallback's result that a function which is not async can return.
#[diagnostic::on_unimplemented(
    message = "the fallback is async, but the function is not",
    label = "returns a future, which nothing awaits",
    note = "write a `fn` as the fallback, or make the limited function an `async fn`"
)]
pub trait AwaitedFallback {
    /// Returns the output. No future has one without being awaited.
    fn output<R>(self) -> R;
}

/// Implemented by the results of all fallbacks.
pub trait ValueFallback {
    /// Returns how to return the result.
    fn ratelimits_kind(&self) -> OfValue;
}

impl<T, R> ValueFallback for Fallback<'_, T, R> {
    fn ratelimits_kind(&self) -> OfValue {
        OfValue
    }
}

impl OfFuture {
    /// Returns the future to await. It is boxed, so that the future of the limited function grows by a pointer and not by what
    /// its fallback holds.
    #[cold]
    pub fn ratelimits_answer<F: Future>(self, called: F) -> ControlFlow<F::Output, Pin<Box<F>>> {
        ControlFlow::Continue(Box::pin(called))
    }

    /// Returns what a function that is not async returns: nothing, which does not compile.
    pub fn ratelimits_value<F: AwaitedFallback, R>(self, called: F) -> R {
        called.output()
    }
}

impl OfValue {
    /// Returns the value to return, which is never awaited: it may not be `Send`.
    #[cold]
    pub fn ratelimits_answer<T>(self, called: T) -> ControlFlow<T, Pending<T>> {
        ControlFlow::Break(called)
    }

    /// Returns the value, which a function that is not async returns.
    #[cold]
    pub fn ratelimits_value<T>(self, called: T) -> T {
        called
    }
}
