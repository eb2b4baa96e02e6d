//! The names of policies.

mod interner;

use std::fmt::{self, Display};
use std::sync::Arc;

use self::interner::intern;

/// The name of a policy.
#[derive(Clone, Debug)]
pub(crate) struct Name {
    /// Counted, so that a cache of limiters knows whether those that are derived from one are in use.
    pub(crate) text: Arc<str>,
    /// The same, if it lives as long as the process.
    pub(crate) interned: Option<&'static str>,
}

impl Name {
    /// The name of a limiter.
    pub(crate) fn of_limiter(text: Arc<str>) -> Self {
        Name { interned: intern(&text), text }
    }

    pub(crate) fn to_shared(&self) -> Arc<str> {
        Arc::clone(&self.text)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// The name of a function: module path and function, with the type for methods, and with the trait and its arguments for
/// methods of traits. `app::send`, `app::Users::send`, `app::<Actor as Handler<Ping>>::handle`.
///
/// All calls of a generic function have one name, so the parameters of an `impl` are left out: `app::Users::send` for
/// `Users<T>`. Concrete arguments are not: `app::Users<u8>::send`. A function with several types, because its trait provides it
/// or its `impl` is for `T` or `Arc<T>`, has a name for each of them.
pub(crate) struct FunctionName {
    pub(crate) module: &'static str,
    /// The type name of a closure in a `static SITE` of the function. It has `_` for the parameters of an `impl`.
    pub(crate) item: &'static str,
    /// The type name of a closure in the function. It has what they stand for in this call.
    pub(crate) closure: &'static str,
}

const IN_STATIC: &str = "::SITE::{{closure}}::{{closure}}";

impl Display for FunctionName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let module = self.module.replace("r#", "");
        let item = without_parameters(self.item.strip_suffix(IN_STATIC).unwrap_or(self.item));
        let path = with_type_of_call(&item, &without_parameters(self.closure), &module).unwrap_or(item);
        f.write_str(&name(&path, &module))
    }
}

/// Removes closures and lifetimes, and lists of generic arguments that are all parameters.
fn without_parameters(path: &str) -> String {
    let path = path.replace("::{{closure}}", "").replace("'_, ", "").replace("'_ ", "").replace("<'_>", "");
    let mut pieces = path.split("<_");
    let mut kept = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        match piece.trim_start_matches(", _").strip_prefix('>') {
            Some(rest) => kept += rest,
            None => kept = kept + "<_" + piece,
        }
    }
    kept
}

/// Returns the path of an item that may have several types, with the type of this call.
fn with_type_of_call(item: &str, closure: &str, module: &str) -> Option<String> {
    let (_, of_call, tail) = split_first_impl(closure)?;
    let ty = match split_impl(of_call).0 {
        ty if is_local(ty, module) => ty.split('<').next()?,
        ty => ty,
    };
    let Some((before, of_item, tail)) = split_first_impl(item) else {
        // A method that its trait provides has no type of its own.
        let tail = tail.split('<').next()?;
        return Some(format!("<{ty} as {}>{tail}", item.strip_suffix(tail)?));
    };
    match split_impl(of_item) {
        (own, Some(of_trait)) if !is_local(own, module) => {
            Some(format!("{before}<{ty} as {of_trait}>{tail}"))
        }
        _ => None,
    }
}

/// Returns the name for a path as the compiler writes it. Paths in brackets become relative to what precedes the brackets.
fn name(path: &str, module: &str) -> String {
    let (mut name, mut rest) = (String::new(), path);
    while let Some((before, inside, after)) = split_brackets(rest) {
        name += before;
        rest = after;
        if !is_before_impl(&name) {
            let parent = name.rsplit_once("::").map_or("", |(parent, _)| parent);
            name = format!("{name}<{}>", relative(inside, parent));
            continue;
        }
        let (ty, of_trait) = split_impl(inside);
        let parent = name.strip_suffix("::").unwrap_or(module);
        name = match of_trait {
            Some(of_trait) => {
                format!("{parent}::<{} as {}>", relative(ty, parent), relative(of_trait, parent))
            }
            // The methods of a type may be anywhere in its crate.
            None if is_local(ty, module) && !ty.starts_with("dyn ") => self::name(ty, module),
            None => format!("{parent}::<{}>", relative(ty, parent)),
        };
    }
    name + rest
}

/// Shortens the paths in a text that are in this parent.
fn relative(text: &str, parent: &str) -> String {
    let paths = text.split_inclusive(|char: char| !(char.is_alphanumeric() || matches!(char, '_' | ':')));
    let shorten =
        |path| str::strip_prefix(path, parent).and_then(|path| path.strip_prefix("::")).unwrap_or(path);
    paths.map(shorten).collect()
}

/// Returns whether brackets after this are those of an `impl`, and not of generic arguments.
fn is_before_impl(path: &str) -> bool {
    path.is_empty() || path.ends_with("::")
}

/// Returns the brackets of the `impl` that a path begins with: what is before, inside and after them.
fn split_first_impl(path: &str) -> Option<(&str, &str, &str)> {
    split_brackets(path).filter(|(before, ..)| is_before_impl(before))
}

/// Returns the type of an `impl` and the trait, if it has one. The compiler writes `Type as Trait` where the `impl` is beside
/// its type or trait, `impl Trait for Type` elsewhere.
fn split_impl(header: &str) -> (&str, Option<&str>) {
    let (split, ty) = match header.strip_prefix("impl ") {
        Some(header) => {
            (split_outside_brackets(header, " for ").map(|(of_trait, ty)| (ty, of_trait)), header)
        }
        None => (split_outside_brackets(header, " as "), header),
    };
    split.map_or((ty, None), |(ty, of_trait)| (ty, Some(of_trait)))
}

/// Returns the first brackets in a path: what is before, inside and after them.
fn split_brackets(path: &str) -> Option<(&str, &str, &str)> {
    let (before, brackets) = path.split_at(path.find('<')?);
    let (inside, after) = brackets.split_at(bracket_len(brackets)?);
    Some((before, &inside[1..inside.len() - 1], after))
}

/// Returns whether the type is from the crate of the module. Names of other types do not begin with a crate.
fn is_local(ty: &str, module: &str) -> bool {
    let root = module.split("::").next().unwrap_or(module);
    let path = ty.strip_prefix("dyn ").unwrap_or(ty);
    path.strip_prefix(root).is_some_and(|tail| tail.starts_with("::"))
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

    fn name_of(item: &str, closure: &str) -> String {
        let (item, closure) =
            (format!("{item}{IN_STATIC}").leak(), format!("{closure}::{{{{closure}}}}").leak());
        FunctionName { module: "a::m", item, closure }.to_string()
    }

    #[test]
    fn names_are_derived_from_paths() {
        for (path, name) in [
            ("a::m::f::{{closure}}", "a::m::f"),
            ("a::m::f::{{closure}}::g", "a::m::f::g"),
            ("a::größe", "a::größe"),
            ("a::m::T::f", "a::m::T::f"),
            ("a::m::T<u8>::f", "a::m::T<u8>::f"),
            ("a::m::T<fn(u8) -> a::m::U<u8>>::f", "a::m::T<fn(u8) -> U<u8>>::f"),
            ("a::m::T<'<', '>'>::f", "a::m::T<'<', '>'>::f"),
            ("a::m::<impl a::T<a::U, a::m::U>>::f", "a::T<U, m::U>::f"),
            ("<a::m::T as a::m::Trait<a::m::U>>::f", "a::m::<T as Trait<U>>::f"),
            ("<a::T as b::Trait<a::m::U, a::mu::U>>::f", "a::m::<a::T as b::Trait<U, a::mu::U>>::f"),
            (
                "<a::m::T<<u8 as c::Of>::It> as b::Trait>::f::{{closure}}::g",
                "a::m::<T<<u8 as c::Of>::It> as b::Trait>::f::g",
            ),
            ("<fn(u8) -> a::m::T<u8> as a::Trait>::f", "a::m::<fn(u8) -> T<u8> as a::Trait>::f"),
            ("<alloc::sync::Arc<a::m::T> as a::Trait>::f", "a::m::<alloc::sync::Arc<T> as a::Trait>::f"),
            ("<dyn a::m::Trait>::f", "a::m::<dyn Trait>::f"),
            ("a::m::<impl dyn a::Trait>::f", "a::m::<dyn a::Trait>::f"),
            ("a::m::<impl b::Trait<u8> for a::T<u8>>::f", "a::m::<a::T<u8> as b::Trait<u8>>::f"),
            ("a::m::f::{{closure}}::<impl b::Trait for a::m::T>::g", "a::m::f::<a::m::T as b::Trait>::g"),
            ("<a::m::T as b::Trait>::f::<impl a::U>::g", "a::U::g"),
            ("<fn(&'_ str) -> a::m::T<'_> as a::Trait>::f", "a::m::<fn(&str) -> T as a::Trait>::f"),
            ("a::f<", "a::f<"),
            ("", ""),
        ] {
            assert_eq!(name_of(path, path), name, "{path}");
        }
    }

    #[test]
    fn parameters_are_left_out_of_names() {
        for (item, closure, name) in [
            ("a::m::f", "a::m::f<u8>", "a::m::f"),
            ("a::m::T<_>::f", "a::m::T<u8>::f<u16>", "a::m::T::f"),
            ("a::m::T<'_, _, _>::f", "a::m::T<u8, u8>::f", "a::m::T::f"),
            ("a::m::T<_, u8>::f", "a::m::T<u8, u8>::f", "a::m::T<_, u8>::f"),
            ("a::m::T<N>::f", "a::m::T<8>::f", "a::m::T<N>::f"),
            ("a::m::<impl a::T<_>>::f", "a::m::<impl a::T<u8>>::f", "a::T::f"),
            (
                "<a::m::T<_> as a::m::Trait<_>>::f",
                "<a::m::T<u8> as a::m::Trait<u8>>::f",
                "a::m::<T as Trait>::f",
            ),
            (
                "a::m::<impl b::Trait<_> for a::T<u8>>::f",
                "a::m::<impl b::Trait<u8> for a::T<u8>>::f",
                "a::m::<a::T<u8> as b::Trait>::f",
            ),
        ] {
            assert_eq!(name_of(item, closure), name, "{item}");
        }
    }

    #[test]
    fn functions_with_several_types_have_a_name_for_each() {
        for (item, closure, name) in [
            ("a::m::Trait::f", "<a::T<u8> as a::m::Trait<u8>>::f", "a::m::<a::T as Trait>::f"),
            ("a::m::Trait::f", "<b::T<u8> as a::m::Trait<u8>>::f<u8>", "a::m::<b::T<u8> as Trait>::f"),
            ("<_ as a::m::Trait<_>>::f", "<a::m::T<u8> as a::m::Trait<u8>>::f<u8>", "a::m::<T as Trait>::f"),
            ("<[_; N] as a::m::Trait>::f", "<[u8; 3] as a::m::Trait>::f", "a::m::<[u8; 3] as Trait>::f"),
            (
                "a::m::<impl a::Trait for &_>::f",
                "a::m::<impl a::Trait for &a::m::T>::f",
                "a::m::<&T as a::Trait>::f",
            ),
        ] {
            assert_eq!(name_of(item, closure), name, "{item}");
        }
    }
}
