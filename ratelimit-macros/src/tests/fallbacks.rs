//! Functions and closures that are called instead of the body.

use super::*;
use crate::model::Target;

#[test]
fn fallbacks_are_named_not_called() {
    for (written, function) in [
        ("f()", "f"),
        ("\"Self::f()\"", "Self::f"),
        ("self.f(user)", "self.f, pass_args"),
        ("a::f(1)", "a::f, pass_args"),
    ] {
        let call = written.trim_matches('"');
        let message = format!(
            "expected a function, found a call; write `fallback = {function}` or `fallback = |_| {call}`"
        );
        fails_with(Rate, "5, fallback", &[written], &message);
    }
    let message = "expected a function, found a call; write `fallback = |_| f(1)`";
    fails_on("async fn g() -> Result<(), E> {}", Rate, "5, fallback = f(1)", &[("f(1)", message)]);
    let message = "expected a function, found a call; write `fallback = f`";
    fails(Rate, "5, pass_args, fallback = f(user)", &[("f(user)", message)]);
    let message = "expected a function; write `fallback = f`, `fallback = Self::f`, `fallback = self.f` or \
                   `fallback = |error| …`";
    fails_with(Rate, "5, fallback", &["\"no path\"", "5", "{ f }"], message);
}

#[test]
fn methods_need_self() {
    let message = "this function has no `self`; write `fallback = f` or `fallback = Self::f`";
    fails_with(Rate, "5, fallback", &["self.f"], message);
}

#[test]
fn pass_args_needs_a_fallback() {
    let message = "`pass_args` needs a fallback; write `fallback = f, pass_args`";
    fails(Rate, "5, pass_args", &[("pass_args", message)]);
}

#[test]
fn closures_take_the_error() {
    for closure in [
        "|error| Err(error.into())",
        "async |error| later(error).await",
        "move |_: Error| 5",
        "(|_| user.id)",
    ] {
        let limited = read(Rate, tokens(&format!("5, fallback = {closure}")), SEND).unwrap();
        let fallback = limited.limits[0].fallback.as_ref().unwrap();
        assert!(matches!(fallback.target, Target::Closure(_)), "{closure}");
    }
    let message = "a fallback closure takes one argument, the `Error`, and captures those of the function; write `|error| …`";
    for (closure, span) in
        [("|| 5", "||"), ("move |user, error| 5", "|user, error|"), ("async |a, b, c| 5", "|a, b, c|")]
    {
        fails(Rate, &format!("5, fallback = {closure}"), &[(span, message)]);
    }
}

#[test]
fn closures_capture_the_arguments() {
    let message = "a closure captures the arguments of the function; leave out `pass_args`";
    fails(Rate, "5, fallback = |error| f(error), pass_args", &[("pass_args", message)]);
    let message = "a closure is written without quotes; write `fallback = |error| f(error)`";
    fails_with(Rate, "5, fallback", &["\"|error| f(error)\""], message);
}

#[test]
fn passed_arguments_are_whole() {
    let message = "`pass_args` needs the whole argument, which is destructured before the async block; give it a name, \
                   and destructure it in the block";
    let boxed = "fn f((a, b): (u8, u8)) -> BoxFuture<'static, u8> { Box::pin(async move { a }) }";
    fails_on(boxed, Count, "5, 60, fallback = g, pass_args", &[("(a, b)", message)]);
    expands(Count, "5, 60, fallback = g", boxed);
}

#[test]
fn passed_arguments_are_unconditional() {
    let message =
        "`pass_args` cannot pass an argument under `#[cfg]`; write `fallback = |_| …`, which captures it";
    let item = "async fn f(#[cfg(unix)] a: u8, b: u8) {}";
    fails_on(item, Count, "5, 60, fallback = g, pass_args", &[("a", message)]);
    expands(Count, "5, 60, fallback = |_| ()", item);
}
