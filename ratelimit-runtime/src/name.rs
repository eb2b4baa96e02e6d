//! The names of policies.

use std::fmt::{self, Display};
use std::sync::Arc;

/// The name of a policy.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    /// Of a function's policy.
    Static(&'static str),
    /// Of a limiter.
    Shared(Arc<str>),
}

impl Name {
    pub(crate) fn to_shared(&self) -> Arc<str> {
        match self {
            Name::Static(name) => (*name).into(),
            Name::Shared(name) => Arc::clone(name),
        }
    }

    pub(crate) fn as_str(&self) -> &str {
        match self {
            Name::Static(name) => name,
            Name::Shared(name) => name,
        }
    }
}

impl Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name of a function, from its module and the name of the type of a closure in it: module path and function, with
/// the type for methods. Generic arguments do not count, nor does the trait. A type of another crate, `Arc<Users>`, has the
/// module before it and keeps its arguments, which alone tell it from others.
pub(crate) struct FunctionName {
    pub(crate) module: &'static str,
    pub(crate) closure: &'static str,
}

impl Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        place(f, self.module, self.closure)
    }
}

/// The path of a function as the compiler writes it: functions that it tells apart have different ones, but for those
/// in different blocks of one function.
pub(crate) fn path(closure: &str) -> &str {
    closure.trim_end_matches(CLOSURE)
}

const CLOSURE: &str = "::{{closure}}";

/// Writes the path that a type's name has: `a::f::{{closure}}`, `<a::T<u8> as a::Trait>::f::{{closure}}`, or
/// `a::<impl a::Trait for b::T>::f::{{closure}}` where the `impl` stands in another module than trait and type.
fn place(f: &mut fmt::Formatter<'_>, module: &str, closure: &str) -> fmt::Result {
    let mut rest = path(closure);
    if !rest.contains('<') && !rest.contains('{') {
        return f.write_str(rest);
    }
    if let Some((ty, behind)) = implementing(rest) {
        if of_crate(ty, module) {
            place(f, module, ty)?;
        } else {
            write!(f, "{module}::{ty}")?;
        }
        rest = behind;
    }
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'<' | b'{')) {
        let brackets = &rest[at..];
        let skipped = if brackets.starts_with(CLOSURE.trim_start_matches(':')) {
            CLOSURE.len() - "::".len()
        } else {
            closing(brackets).unwrap_or(brackets.len())
        };
        f.write_str(rest[..at].strip_suffix("::").unwrap_or(&rest[..at]))?;
        rest = &rest[at + skipped..];
    }
    f.write_str(rest)
}

/// Whether the type is of the crate that the module is of. Names of other types do not begin with a crate.
fn of_crate(ty: &str, module: &str) -> bool {
    let root = module.split("::").next().unwrap_or(module);
    let path = ty.strip_prefix("dyn ").unwrap_or(ty);
    path.strip_prefix(root).is_some_and(|behind| behind.starts_with("::"))
}

/// The type in the last brackets that stand for an `impl`, and the path behind them.
fn implementing(path: &str) -> Option<(&str, &str)> {
    let (mut at, mut found) = (0, None);
    while let Some(next) = path[at..].find('<') {
        at += next;
        let length = closing(&path[at..])?;
        let inside = &path[at + 1..at + length - 1];
        if let Some(of_module) = inside.strip_prefix("impl ").filter(|_| at > 0) {
            found = Some((behind(of_module, " for ").unwrap_or(of_module), at + length));
        } else if at == 0 {
            found = Some((before(inside, " as ").unwrap_or(inside), length));
        }
        at += length;
    }
    found.map(|(ty, end)| (ty, &path[end..]))
}

/// How long the brackets are that the text begins with. The arrow of a function's type closes none.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            b'>' if at > 0 && bytes[at - 1] == b'-' => {}
            b'>' => depth -= 1,
            // A `char` among the generic arguments.
            b'\'' if bytes.get(at + 2) == Some(&b'\'') => at += 2,
            _ => {}
        }
        at += 1;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

fn before<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    outside(text, word).map(|at| &text[..at])
}

fn behind<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    outside(text, word).map(|at| &text[at + word.len()..])
}

/// Where the word, which begins with a space, stands outside of all angle brackets.
fn outside(text: &str, word: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' if bytes[at..].starts_with(word.as_bytes()) => return Some(at),
            b'<' => at += closing(&text[at..])?,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_named_by_module_and_function_with_the_type_for_methods() {
        for (closure, name) in [
            ("a::f::{{closure}}::{{closure}}", "a::f"),
            ("a::f<alloc::vec::Vec<u8>>::{{closure}}::{{closure}}", "a::f"),
            ("a::f::{{closure}}::g::{{closure}}::{{closure}}", "a::f::g"),
            ("a::T::f::{{closure}}", "a::T::f"),
            ("a::T<fn(u8) -> a::U<u8>>::f<u8>::{{closure}}", "a::T::f"),
            ("a::T<'<'>::f::{{closure}}", "a::T::f"),
            ("<a::T as b::Trait<u8>>::f::{{closure}}", "a::T::f"),
            ("<a::T<<u8 as c::Of>::It> as b::Trait>::f::{{closure}}::g::{{closure}}", "a::T::f::g"),
            ("<fn(u8) -> a::T<u8> as b::Trait>::f::{{closure}}", "a::m::fn(u8) -> a::T<u8>::f"),
            ("<[a::T<u8>] as b::Trait>::f::{{closure}}", "a::m::[a::T<u8>]::f"),
            ("<alloc::sync::Arc<a::T> as a::Trait>::f::{{closure}}", "a::m::alloc::sync::Arc<a::T>::f"),
            ("<u64 as a::Trait>::f::{{closure}}", "a::m::u64::f"),
            ("<dyn a::Trait>::f::{{closure}}", "dyn a::Trait::f"),
            ("a::m::<impl a::T<u8>>::f::{{closure}}", "a::T::f"),
            ("a::f::{{closure}}::<impl a::Trait<u8> for b::T<u8>>::g::{{closure}}", "a::m::b::T<u8>::g"),
            ("a::größe::{{closure}}", "a::größe"),
            ("a::f<", "a::f"),
            ("", ""),
        ] {
            assert_eq!(FunctionName { module: "a::m", closure }.to_string(), name, "{closure}");
        }
    }
}
