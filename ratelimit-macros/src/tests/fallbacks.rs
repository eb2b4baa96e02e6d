//! Functions and closures that are called instead of the body.

use super::*;
use crate::model::Target;

#[test]
fn functions_are_named() {
    let not_a_name = "`fallback` names a function; write `fallback = f`, `fallback = Self::f`, `fallback = self.f` or \
                      `fallback = |error| …`";
    for (written, function) in [("f()", "f"), ("\"Self::f()\"", "Self::f"), ("self.f()", "self.f")] {
        let message = format!(
            "`fallback` names a function and does not call it; write `fallback = {function}`, without `()`"
        );
        fails(Rate, &format!("5, fallback = {written}"), &[(written, &message)]);
    }
    for (written, function) in [("self.f(user)", "self.f"), ("a::f(1)", "a::f")] {
        let message = format!(
            "`fallback` names a function and does not call it; write `fallback = {function}`, and `pass_args` for the arguments of the call, or `fallback = |_| {written}`"
        );
        fails(Rate, &format!("5, fallback = {written}"), &[(written, &message)]);
    }
    for written in ["\"no path\"", "5", "{ f }"] {
        fails(Rate, &format!("5, fallback = {written}"), &[(written, not_a_name)]);
    }
    fails(
        Rate,
        "5, pass_args",
        &[(
            "pass_args",
            "`pass_args` says what a fallback gets, and there is none; write `fallback = …` beside it",
        )],
    );
    fails(
        Rate,
        "5, fallback = self.f",
        &[("self.f", "this function has no `self`; write `fallback = f` or `fallback = Self::f`")],
    );
}

#[test]
fn closures_get_the_error() {
    for closure in [
        "|error| Err(error.into())",
        "async |error| later(error).await",
        "move |_: Error| 5",
        "(|_| user.id)",
    ] {
        let args = tokens(&format!("5, fallback = {closure}"));
        let Ok(limits) = read(Rate, args, SEND) else { panic!("{closure}") };
        let fallback = limits.policies[0].fallback.as_ref().unwrap();
        assert!(matches!(fallback.target, Target::Closure(_)), "{closure}");
    }
}

#[test]
fn closures_written_wrongly() {
    let one = "a closure gets one argument, the `Error`, and sees those of the call itself; write `|_| …` or `|error| …`";
    for (closure, place) in
        [("|| 5", "||"), ("move |user, error| 5", "|user, error|"), ("async |a, b, c| 5", "|a, b, c|")]
    {
        fails(Rate, &format!("5, fallback = {closure}"), &[(place, one)]);
    }
    fails(
        Rate,
        "5, fallback = |error| f(error), pass_args",
        &[("pass_args", "a closure sees the arguments of the call itself; leave `pass_args` out")],
    );
    fails(
        Rate,
        "5, fallback = \"|error| f(error)\", pass_args",
        &[("\"|error| f(error)\"", "a closure has no quotes; write `fallback = |error| f(error)`")],
    );
}
