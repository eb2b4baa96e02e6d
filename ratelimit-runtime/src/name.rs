//! The names of policies.

use std::fmt::{self, Display};
use std::sync::Arc;

/// The name of a policy.
#[derive(Clone, Debug)]
pub(crate) enum Name {
    /// The name of a function's policy.
    Static(&'static str),
    /// The name of a limiter.
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

/// The name of a function, derived from its module and the type name of a closure in it: module path and function, with
/// the type for methods. Generic arguments and the trait are left out. A foreign type, such as `Arc<Users>`, gets the module
/// as a prefix and keeps its arguments, which distinguish it from others.
pub(crate) struct FunctionName {
    pub(crate) module: &'static str,
    pub(crate) closure: &'static str,
}

impl Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_path(f, self.module, self.closure)
    }
}

/// Returns the path of a function as the compiler writes it. Different functions have different paths, unless they are in
/// different blocks of one function.
pub(crate) fn function_path(closure: &str) -> &str {
    closure.trim_end_matches(CLOSURE)
}

const CLOSURE: &str = "::{{closure}}";

/// Writes the path in a type name: `a::f::{{closure}}`, `<a::T<u8> as a::Trait>::f::{{closure}}`, or
/// `a::<impl a::Trait for b::T>::f::{{closure}}` for an `impl` in another module than its trait and type.
fn write_path(f: &mut fmt::Formatter<'_>, module: &str, closure: &str) -> fmt::Result {
    let mut rest = function_path(closure);
    if !rest.contains('<') && !rest.contains('{') {
        return f.write_str(rest);
    }
    if let Some((ty, tail)) = split_self_type(rest) {
        if is_local(ty, module) {
            write_path(f, module, ty)?;
        } else {
            write!(f, "{module}::{ty}")?;
        }
        rest = tail;
    }
    while let Some(at) = rest.bytes().position(|byte| matches!(byte, b'<' | b'{')) {
        let brackets = &rest[at..];
        let skipped = if brackets.starts_with(CLOSURE.trim_start_matches(':')) {
            CLOSURE.len() - "::".len()
        } else {
            bracket_len(brackets).unwrap_or(brackets.len())
        };
        f.write_str(rest[..at].strip_suffix("::").unwrap_or(&rest[..at]))?;
        rest = &rest[at + skipped..];
    }
    f.write_str(rest)
}

/// Returns whether the type is from the crate of the module. Names of other types do not begin with a crate.
fn is_local(ty: &str, module: &str) -> bool {
    let root = module.split("::").next().unwrap_or(module);
    let path = ty.strip_prefix("dyn ").unwrap_or(ty);
    path.strip_prefix(root).is_some_and(|tail| tail.starts_with("::"))
}

/// Returns the type in the last brackets that denote an `impl`, and the path after them.
fn split_self_type(path: &str) -> Option<(&str, &str)> {
    let (mut at, mut found) = (0, None);
    while let Some(next) = path[at..].find('<') {
        at += next;
        let end = at + bracket_len(&path[at..])?;
        let inside = &path[at + 1..end - 1];
        if let Some(of_impl) = inside.strip_prefix("impl ").filter(|_| at > 0) {
            let ty = split_outside_brackets(of_impl, " for ").map_or(of_impl, |(_, ty)| ty);
            found = Some((ty, end));
        } else if at == 0 {
            found = Some((split_outside_brackets(inside, " as ").map_or(inside, |(ty, _)| ty), end));
        }
        at = end;
    }
    found.map(|(ty, end)| (ty, &path[end..]))
}

/// Returns the length of the brackets at the start of the text.
fn bracket_len(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut depth, mut at) = (0, 0);
    while at < bytes.len() {
        match bytes[at] {
            b'<' => depth += 1,
            // The arrow of a function type.
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

/// Splits the text at the first occurrence of the word, which begins with a space, outside all angle brackets.
fn split_outside_brackets<'a>(text: &'a str, word: &str) -> Option<(&'a str, &'a str)> {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        match bytes[at] {
            b' ' if bytes[at..].starts_with(word.as_bytes()) => {
                return Some((&text[..at], &text[at + word.len()..]));
            }
            b'<' => at += bracket_len(&text[at..])?,
            _ => at += 1,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_derived_from_type_names() {
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
