//! Several attributes on one function.

use super::*;
use crate::model::Tag;
use crate::stack;

/// Expands the attributes of an item as the compiler does: the first, until there is none of ours. Those that are not
/// ours stay.
fn expanded(item: &str) -> (String, usize) {
    let mut item = tokens(item);
    for expansions in 0.. {
        let function = Function::parse(item.clone()).unwrap();
        let is_ours = |attribute: &&syn::Attribute| {
            let name = attribute.path().segments.last().unwrap().ident.to_string();
            name == stack::CARRIER || Kind::ALL.iter().any(|kind| kind.name() == name)
        };
        let Some(first) = function.attributes.iter().position(|attribute| is_ours(&attribute)) else {
            return (item.to_string(), expansions);
        };
        let mut function = function;
        let attribute = function.attributes.remove(first);
        let args = attribute.meta.require_list().unwrap().tokens.clone();
        let name = attribute.path().segments.last().unwrap().ident.to_string();
        let rest = quote::ToTokens::to_token_stream(&function);
        item = match Kind::ALL.into_iter().find(|kind| kind.name() == name) {
            Some(kind) => expand::attribute(kind, args, rest),
            None => expand::carried(args, rest),
        };
        if item.to_string().contains("compile_error") {
            return (item.to_string(), expansions);
        }
    }
    unreachable!()
}

/// The policies that the prologue charges, by the numbers that stand in for them.
fn charged(item: &str) -> Vec<u64> {
    let (expanded, _) = expanded(item);
    assert_eq!(expanded.matches("Call :: decide").count(), 1, "{expanded}");
    let numbers = expanded.split("literal :: count (").skip(1);
    numbers.map(|rest| rest.split(')').next().unwrap().trim().parse().unwrap()).collect()
}

#[test]
fn are_woven_once_in_the_order_in_which_they_are_written() {
    const FUNCTION: &str = "async fn send() -> Result<(), E> { Ok(()) }";
    for attributes in [
        "#[count_limit(1, 60)] #[window_limit(2, 60)] #[ratelimits::count_limit(3, 60)]",
        "#[count_limit(1, 60)] #[inline] #[::rl::window_limit(2, 60)] #[doc = \"\"] #[count_limit(3, 60)] #[must_use]",
        // As they are once all have stepped behind one that a condition then leaves out.
        "#[__limit(count_limit(1, 60))] #[__limit(window_limit(2, 60))] #[__limit(count_limit(3, 60))]",
    ] {
        assert_eq!(charged(&format!("{attributes} {FUNCTION}")), [1, 2, 3], "{attributes}");
    }
}

#[test]
fn step_behind_one_that_may_come() {
    let function =
        "#[cfg_attr(test, inline, cfg_attr(unix, count_limit(2, 60)))] async fn f() -> Result<(), E> {}";
    let stepped = expand::attribute(Count, tokens("1, 60"), tokens(function)).to_string();
    let expected = "#[cfg_attr(test, inline, cfg_attr(unix, count_limit(2, 60)))]
        #[::ratelimits::__private::__limit(count_limit(1, 60))]
        async fn f() -> Result<(), E> {}";
    assert_eq!(stepped.replace(' ', ""), tokens(expected).to_string().replace(' ', ""));
    let elsewhere = expand::attribute(Count, tokens("1, 60, crate = rl"), tokens(function)).to_string();
    assert!(elsewhere.contains("rl :: __private :: __limit"), "{elsewhere}");

    let function = "#[cfg_attr(test, inline)] #[doc(count_limit)] async fn f() -> Result<(), E> {}";
    assert_eq!(charged(&format!("#[count_limit(1, 60)] {function}")), [1]);
}

#[test]
fn tell_all_that_is_wrong_with_any_of_them_at_once() {
    let (expanded, expansions) = expanded(
        "#[count_limit(1)] #[window_limit(2, 60, kye = id)] #[rate_limit] async fn f(id: u8) -> Result<(), E> { body() }"
            .replace("#[rate_limit]", "#[rate_limit()]")
            .as_str(),
    );
    assert_eq!((expansions, expanded.matches("compile_error").count()), (2, 3), "{expanded}");
    assert!(expanded.ends_with("async fn f (id : u8) -> Result < () , E > { body () }"), "{expanded}");
}

#[test]
fn are_on_one_registry_and_of_names_of_their_own() {
    let read = |args: [&str; 2]| {
        let limits = args.map(|args| Limit::written(Count, tokens(args)));
        Limits::read(&limits, Function::parse(tokens(SEND)).unwrap())
    };
    let messages = |args| -> Vec<_> {
        let errors = read(args).err().into_iter().flatten();
        errors.map(|error| (error.span().source_text().unwrap_or_default(), error.to_string())).collect()
    };
    let registry = "the attributes of a function are one decision, on one registry; write `registry = &user.registry` on \
                    each of them";
    let one = "1, 60, registry = &user.registry";
    assert_eq!(messages([one, "2, 60"]), [(String::new(), registry.to_owned())]);
    let other = "2, 60, registry = &user.other";
    assert_eq!(messages([one, other]), [("&user.other".to_owned(), registry.to_owned())]);
    assert_eq!(messages([one, "2, 60, registry = &user.registry"]), []);

    let name = "this name is that of another attribute of the function; give each a name of its own, or leave it out";
    let named = "1, 60, name = \"sms\"";
    assert_eq!(messages([named, named]), [("\"sms\"".to_owned(), name.to_owned())]);
}

#[test]
fn lie_together_by_the_key_if_it_is_written_the_same() {
    let tag = |keys: [&str; 2]| {
        let limits = keys.map(|key| Limit::written(Count, tokens(&format!("1, 60{key}"))));
        Limits::read(&limits, Function::parse(tokens(SEND)).unwrap()).unwrap().tag
    };
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
    let alone =
        Limits::read(&[Limit::written(Count, tokens("1, 60"))], Function::parse(tokens(SEND)).unwrap());
    assert_eq!(alone.unwrap().tag, Tag::Name);
}

#[test]
fn are_numbered_by_kind_and_those_in_shadow_last() {
    let limits = [
        (Count, "1, 60, shadow"),
        (Count, "2, 60"),
        (Rate, "5"),
        (Count, "3, 60, name = \"given\""),
        (Count, "4, 60"),
    ];
    let limits = limits.map(|(kind, args)| Limit::written(kind, tokens(args)));
    let limits = Limits::read(&limits, Function::parse(tokens(SEND)).unwrap()).unwrap();
    let numbers: Vec<_> = limits.policies.iter().map(|policy| policy.number).collect();
    assert_eq!(numbers, [3, 1, 1, 1, 2]);
}
