//! Several attributes on one function.

use super::*;
use crate::model::Tag;
use crate::stack;

/// Expands our attributes as the compiler does, the first one first. Returns the item and the number of expansions.
fn expanded(item: &str) -> (String, usize) {
    let mut item = tokens(item);
    for expansions in 0.. {
        let function = Function::parse(item.clone()).unwrap();
        let is_ours = |attribute: &&syn::Attribute| {
            let name = attribute.path().segments.last().unwrap().ident.to_string();
            name == stack::CARRIER || AttributeKind::named(&name).is_some()
        };
        let Some(first) = function.attributes.iter().position(|attribute| is_ours(&attribute)) else {
            return (item.to_string(), expansions);
        };
        let mut function = function;
        let attribute = function.attributes.remove(first);
        let args = attribute.meta.require_list().unwrap().tokens.clone();
        let name = attribute.path().segments.last().unwrap().ident.to_string();
        let rest = quote::ToTokens::to_token_stream(&function);
        item = match AttributeKind::named(&name) {
            Some(kind) => expand::attribute(kind, args, rest),
            None => expand::deferred(args, rest),
        };
        if item.to_string().contains("compile_error") {
            return (item.to_string(), expansions);
        }
    }
    unreachable!()
}

/// Returns the limits that the prologue charges, in order.
fn charged(item: &str) -> Vec<u64> {
    let (expanded, _) = expanded(item);
    assert_eq!(expanded.matches("Call :: decide").count(), 1, "{expanded}");
    let policies = expanded.split("const POLICY").skip(1);
    let limit =
        |policy: &str| policy.split_once("count (\"limit\" ,")?.1.split(')').next()?.trim().parse().ok();
    policies.map(|policy| limit(policy).unwrap()).collect()
}

#[test]
fn siblings_expand_once_in_source_order() {
    const FUNCTION: &str = "async fn send() -> Result<(), E> { Ok(()) }";
    for attributes in [
        "#[count_limit(1, 60)] #[window_limit(2, 60)] #[ratelimits::count_limit(3, 60)]",
        "#[count_limit(1, 60)] #[inline] #[::rl::window_limit(2, 60)] #[doc = \"\"] #[count_limit(3, 60)] #[must_use]",
        // All were deferred to one that a condition then left out.
        "#[__limit(count_limit(1, 60))] #[__limit(window_limit(2, 60))] #[__limit(count_limit(3, 60))]",
    ] {
        assert_eq!(charged(&format!("{attributes} {FUNCTION}")), [1, 2, 3], "{attributes}");
    }
}

#[test]
fn attributes_defer_to_conditional_siblings() {
    let function =
        "#[cfg_attr(test, inline, cfg_attr(unix, count_limit(2, 60)))] async fn f() -> Result<(), E> {}";
    let deferred = expand::attribute(Count, tokens("1, 60"), tokens(function)).to_string();
    let expected = "#[cfg_attr(test, inline, cfg_attr(unix, count_limit(2, 60)))]
        #[::ratelimits::__private::__limit(count_limit(1, 60))]
        async fn f() -> Result<(), E> {}";
    assert_eq!(deferred.replace(' ', ""), tokens(expected).to_string().replace(' ', ""));
    let elsewhere = expand::attribute(Count, tokens("1, 60, crate = rl"), tokens(function)).to_string();
    assert!(elsewhere.contains("rl :: __private :: __limit"), "{elsewhere}");

    let function = "#[cfg_attr(test, inline)] #[doc(count_limit)] async fn f() -> Result<(), E> {}";
    assert_eq!(charged(&format!("#[count_limit(1, 60)] {function}")), [1]);
}

#[test]
fn errors_of_siblings_are_reported_together() {
    let (expanded, expansions) = expanded(
        "#[count_limit(1)] #[window_limit(2, 60, kye = id)] #[rate_limit] async fn f(id: u8) -> Result<(), E> { body() }"
            .replace("#[rate_limit]", "#[rate_limit()]")
            .as_str(),
    );
    assert_eq!((expansions, expanded.matches("compile_error").count()), (2, 3), "{expanded}");
    assert!(expanded.ends_with("async fn f (id : u8) -> Result < () , E > { body () }"), "{expanded}");
}

fn read_both(args: [&str; 2]) -> syn::Result<LimitedFunction> {
    let attributes = args.map(|args| LimitAttribute::new(Count, tokens(args)));
    LimitedFunction::read(&attributes, Function::parse(tokens(SEND)).unwrap())
}

fn errors(args: [&str; 2]) -> Vec<(String, String)> {
    let errors = read_both(args).err().into_iter().flatten();
    errors.map(|error| (error.span().source_text().unwrap_or_default(), error.to_string())).collect()
}

#[test]
fn siblings_share_a_registry() {
    let message = "all attributes of a function use one registry; write `registry = &user.registry` on each";
    let one = "1, 60, registry = &user.registry";
    assert_eq!(errors([one, "2, 60"]), [(String::new(), message.to_owned())]);
    let other = "2, 60, registry = &user.other";
    assert_eq!(errors([one, other]), [("&user.other".to_owned(), message.to_owned())]);
    assert_eq!(errors([one, "2, 60, registry = &user.registry"]), []);
}

#[test]
fn siblings_have_different_names() {
    let message = "another attribute of this function has the same name; rename one";
    let named = "1, 60, name = \"sms\"";
    assert_eq!(errors([named, named]), [("\"sms\"".to_owned(), message.to_owned())]);
}

#[test]
fn tag_is_the_key_if_written_the_same() {
    let tag = |[a, b]: [&str; 2]| read_both([&format!("1, 60{a}"), &format!("1, 60{b}")]).unwrap().tag;
    for keys in [[", key = user.id", ", key = \"<user.id>\""], [", key_type = IP", ", key = \"<@ip>\""]] {
        assert_eq!(tag(keys), Tag::Key, "{keys:?}");
    }
    for keys in [
        [", key = user.id", ", key = user.name"],
        [", key = user.id", ", key = (user.id, user.id)"],
        [", key = format!(\"a b{}\", user.id)", ", key = format!(\"ab{}\", user.id)"],
        [", key = user.id as u8", ""],
        ["", ""],
    ] {
        assert_eq!(tag(keys), Tag::Function, "{keys:?}");
    }
    assert_eq!(read(Count, tokens("1, 60"), SEND).unwrap().tag, Tag::Name);
}

#[test]
fn limits_without_a_name_are_numbered_shadow_last() {
    let limits = [
        (Count, "1, 60, shadow"),
        (Count, "2, 60"),
        (Rate, "5"),
        (Count, "3, 60, name = \"given\""),
        (Count, "4, 60"),
    ];
    let limits = limits.map(|(kind, args)| LimitAttribute::new(kind, tokens(args)));
    let limits = LimitedFunction::read(&limits, Function::parse(tokens(SEND)).unwrap()).unwrap();
    let numbers: Vec<_> = limits.limits.iter().map(|limit| limit.number).collect();
    assert_eq!(numbers, [4, 1, 2, 0, 3]);
}

#[test]
fn separate_decisions_are_numbered_on() {
    let first = "#[window_limit(1, 60, name = \"given\")] #[rate_limit(5)] #[count_limit(2, 60)]";
    // Another attribute may have wrapped the body.
    let (first, _) = expanded(&format!("{first} async fn f() -> Result<(), E> {{ {{ body() }} }}"));
    let (second, _) = expanded(&format!("#[count_limit(3, 60)] {first}"));
    for number in ["number : 0u32", "number : 1u32", "number : 2u32", "number : 3u32"] {
        assert_eq!(second.matches(number).count(), 1, "{number} in {second}");
    }
}
