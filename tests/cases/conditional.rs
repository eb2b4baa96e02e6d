//! Under `#[cfg]`. `test` holds in every build of this file, `not(test)` in none, so both states are there.

use super::limits::{count_limit, rate_limit};
use super::{AppResult, Text, alone, assert_limited, text};

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
fn arguments_that_are_not_there_are_not_passed() {
    alone(async {
        assert_eq!(arguments(1, 2).await.unwrap(), 3);
        assert_limited(arguments(1, 2).await);
        assert_eq!(passed(1, text("a"), text("b")).await, text("ab1"));
        assert_eq!(passed(1, text("a"), text("b")).await, text("a"));
        assert_eq!(Api.method(text("a")).await, text("a!"));
        assert_eq!(Api.method(text("a")).await, text("a"));
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
fn parameters_that_are_not_there() {
    alone(async { assert_eq!((parameters(5u8).await, parameters(6u16).await), (5, 106)) });
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
async fn twice() -> Missing {}

#[cfg(test)]
#[rate_limit("1/day", fallback = none)]
async fn twice() -> u8 {
    #[cfg(not(test))]
    return Missing;
    #[cfg(test)]
    1
}

fn none() -> u8 {
    0
}

#[test]
fn attributes_and_functions_that_are_not_there() {
    alone(async {
        assert_eq!(attribute().await.unwrap(), 1);
        assert_limited(attribute().await);
        assert_eq!(no_attribute().await.unwrap() + no_attribute().await.unwrap(), 2);
        assert_eq!((twice().await, twice().await), (1, 0));
    });
}

#[count_limit(1, "1d", fallback = |_| either(number))]
async fn of_one_name(#[cfg(not(test))] number: Missing, #[cfg(test)] number: u16) -> u16 {
    number
}

fn either(number: u16) -> u16 {
    number + 1000
}

#[test]
fn arguments_of_one_name_under_conditions_that_exclude_each_other() {
    alone(async { assert_eq!((of_one_name(7).await, of_one_name(7).await), (7, 1007)) });
}
