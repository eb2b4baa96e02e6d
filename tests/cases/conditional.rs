//! Conditional compilation: `test` is always set here, `not(test)` never.

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, assert_admits_one, assert_outputs, isolated, text};

#[cfg(not(test))]
struct Missing;

#[count_limit(1, "1d", key = "<id>:<here>")]
async fn arguments(
    id: u8,
    #[cfg(test)] here: u8,
    #[cfg(not(test))] gone: Missing,
    #[cfg(not(test))] here: Missing,
) -> AppResult<u8> {
    #[cfg(not(test))]
    drop(gone);
    Ok(id + here)
}

#[count_limit(1, "1d", key = id, fallback = |_| returned(id, text, Text(last)))]
async fn passed(
    #[cfg(not(test))] gone: Missing,
    id: u8,
    #[cfg(test)] mut text: Text,
    #[cfg(all(test, not(miri)))] Text(last): Text,
) -> Text {
    text.0.push_str(&last);
    text.0.push_str(&id.to_string());
    text
}

fn returned(id: u8, text: Text, Text(last): Text) -> Text {
    assert!(id == 1 && last == "b");
    text
}

struct Api;

impl Api {
    #[count_limit(1, "1d", fallback = |_| Self::refused(self, text))]
    async fn method(&self, #[cfg(not(test))] gone: Missing, #[cfg(test)] text: Text) -> Text {
        Text(text.0 + "!")
    }

    fn refused(_: &Self, text: Text) -> Text {
        text
    }
}

#[test]
fn disabled_arguments_are_not_passed() {
    isolated(async {
        assert_admits_one!(arguments(1, 2) => 3);
        assert_outputs!(
            passed(1, text("a"), text("b")) => text("ab1"), text("a");
            Api.method(text("a")) => text("a!"), text("a");
        );
    });
}

#[count_limit(1, "1d", key = T::default(), fallback = |_| sum(value))]
async fn parameters<
    #[cfg(test)] T: Default + Into<u64> + std::fmt::Display,
    #[cfg(not(test))] T: Missing,
    #[cfg(not(test))] const N: usize,
>(
    value: T,
    #[cfg(not(test))] more: [T; N],
) -> u64 {
    value.into()
}

fn sum<T: Into<u64>>(value: T) -> u64 {
    value.into() + 100
}

#[test]
fn disabled_generic_parameters() {
    isolated(async { assert_eq!((parameters(5u8).await, parameters(6u16).await), (5, 106)) });
}

#[cfg_attr(test, count_limit(1, "1d"))]
#[cfg_attr(not(test), nonsense)]
async fn attribute() -> AppResult<u8> {
    Ok(1)
}

#[cfg_attr(not(test), count_limit(1, "1d"))]
async fn no_attribute() -> AppResult<u8> {
    tokio::task::yield_now().await;
    Ok(1)
}

#[cfg(not(test))]
#[count_limit(1, "1d", fallback = missing)]
async fn defined_twice() -> Missing {}

#[cfg(test)]
#[rate_limit("1/day", fallback = none)]
async fn defined_twice() -> u8 {
    #[cfg(not(test))]
    return Missing;
    #[cfg(test)]
    1
}

fn none() -> u8 {
    0
}

#[test]
fn disabled_attributes_and_functions() {
    isolated(async {
        assert_admits_one!(attribute() => 1);
        assert_eq!(no_attribute().await.unwrap() + no_attribute().await.unwrap(), 2);
        assert_outputs!(defined_twice() => 1, 0);
    });
}

#[count_limit(1, "1d", fallback = |_| either(number))]
async fn same_name(#[cfg(not(test))] number: Missing, #[cfg(test)] number: u16) -> u16 {
    number
}

fn either(number: u16) -> u16 {
    number + 1000
}

#[test]
fn one_name_under_exclusive_cfgs() {
    isolated(async { assert_eq!((same_name(7).await, same_name(7).await), (7, 1007)) });
}
