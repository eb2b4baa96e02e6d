//! Return types.

use std::error::Error;
use std::fmt::{Debug, Display};

use super::limits::{count_limit, funnel_limit};
use super::{AppError, AppResult, assert_admits_one, assert_limited, assert_outputs, isolated};

#[count_limit(2, "1d")]
async fn boxed_trait(number: u8) -> AppResult<Box<dyn Display + Send>> {
    if number == 0 {
        return Ok(Box::new("none"));
    }
    Ok(Box::new(number))
}

#[count_limit(1, "1d", fallback = longest)]
async fn function_pointer() -> fn(&str) -> usize {
    str::len
}

#[count_limit(1, "1d", fallback = |_| &[])]
async fn slice() -> &'static [u8] {
    &[1, 2]
}

fn longest() -> fn(&str) -> usize {
    |_| usize::MAX
}

#[test]
fn output_is_coerced() {
    isolated(async {
        assert_eq!(boxed_trait(5).await.unwrap().to_string(), "5");
        assert_eq!(boxed_trait(0).await.unwrap().to_string(), "none");
        assert!(boxed_trait(5).await.is_err());
        assert_eq!((function_pointer().await("a"), function_pointer().await("a")), (1, usize::MAX));
        assert_outputs!(slice() => [1u8, 2], [0u8; 0]);
    });
}

#[funnel_limit(1, "1/day")]
async fn iterator(list: &[u8]) -> AppResult<impl Iterator<Item = u8> + '_> {
    Ok(list.iter().map(|number| number + 1))
}

#[funnel_limit(1, "1/day")]
async fn iterator_of_closures<'a>(
    list: &'a [u8],
    most: u8,
) -> AppResult<impl Iterator<Item = impl Fn(u8) -> u8 + 'a> + 'a> {
    let capped = move |number: &'a u8| (*number < most).then_some(move |more| number + more);
    Ok(list.iter().filter_map(capped))
}

#[funnel_limit(1, "1/day")]
async fn pair(text: &str) -> Result<(impl Display, impl Debug + use<'_>), AppError> {
    Ok((text.len(), text))
}

#[funnel_limit(1, "1/day", fallback = no_text)]
async fn impl_trait() -> impl Display {
    if false {
        return no_text();
    }
    String::from("body")
}

fn no_text() -> String {
    String::from("fallback")
}

#[test]
fn impl_trait_outputs() {
    isolated(async {
        assert_eq!(iterator(&[1, 2]).await.unwrap().collect::<Vec<_>>(), [2, 3]);
        assert!(iterator(&[1, 2]).await.is_err());
        let sums = iterator_of_closures(&[1, 2, 3], 3).await.unwrap().map(|add| add(10));
        assert_eq!(sums.collect::<Vec<_>>(), [11, 12]);
        assert!(iterator_of_closures(&[], 3).await.is_err());
        let (length, same) = pair("text").await.unwrap();
        assert_eq!((length.to_string(), format!("{same:?}")), ("4".to_owned(), "\"text\"".to_owned()));
        assert!(pair("text").await.is_err());
        assert_eq!(impl_trait().await.to_string(), "body");
        assert_eq!(impl_trait().await.to_string(), "fallback");
    });
}

mod library {
    pub(super) type Result<T = u8, E = super::AppError> = std::result::Result<T, E>;
}

#[count_limit(1, "1d")]
async fn alias() -> library::Result {
    Ok(1)
}

#[count_limit(1, "1d")]
async fn any_error() -> Result<u8, Box<dyn Error + Send + Sync>> {
    Ok("5".parse()?)
}

#[count_limit(1, "1d")]
async fn own_error() -> Result<u8, ratelimits::Error> {
    Ok(1)
}

#[test]
fn results_with_convertible_errors() {
    isolated(async {
        assert_admits_one!(alias() => 1);
        assert_eq!(any_error().await.unwrap(), 5);
        assert!(any_error().await.unwrap_err().is::<ratelimits::Error>());
        assert_eq!(own_error().await.unwrap(), 1);
        assert!(own_error().await.unwrap_err().is_limited());
    });
}

#[count_limit(1, "1d", fallback = |_| None)]
async fn option(list: &mut Vec<u8>) -> Option<&mut u8> {
    list.push(1);
    let number = list.last_mut()?;
    Some(number)
}

#[count_limit(1, "1d")]
async fn nested(text: &str) -> AppResult<Result<Option<&str>, [u8; 2]>> {
    if text.is_empty() {
        return Ok(Err([0; 2]));
    }
    Ok(Ok(text.split_once(' ').map(|(first, _)| first)))
}

#[test]
fn options_and_nested_results() {
    isolated(async {
        let mut list = vec![];
        *option(&mut list).await.unwrap() += 1;
        assert_eq!(option(&mut list).await, None);
        assert_eq!(list, [2]);
        assert_eq!(nested("a b").await.unwrap(), Ok(Some("a")));
        assert_limited(nested("").await);
    });
}

#[count_limit(1, "1d")]
async fn boxed_impl_trait() -> AppResult<Box<dyn Iterator<Item = impl Display>>> {
    Ok(Box::new([1, 2].into_iter()))
}

#[test]
fn trait_objects_of_impl_trait() {
    isolated(async {
        let text: Vec<_> = boxed_impl_trait().await.unwrap().map(|item| item.to_string()).collect();
        assert_eq!(text, ["1", "2"]);
        assert_limited(boxed_impl_trait().await.map(drop));
    });
}
