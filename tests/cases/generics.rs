//! Generic parameters, lifetimes and where clauses.

use std::borrow::Cow;
use std::fmt::{Debug, Display};

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppError, AppResult, assert_limited, isolated};

#[count_limit(1, "1d", key = key)]
async fn generic<'a, T, const N: usize>(key: impl Display, values: [&'a T; N]) -> Result<&'a T, AppError>
where
    T: Debug + ?Sized,
{
    drop(key);
    Ok(values[N - 1])
}

#[count_limit(1, "1d", key = "<N>:<size_of::<T>()>", fallback = defaults::<T, N>, pass_args)]
async fn named_in_arguments<T: Default + Copy, const N: usize>(value: T) -> [T; N] {
    [value; N]
}

fn defaults<T: Default + Copy, const N: usize>(_: T) -> [T; N] {
    [T::default(); N]
}

#[test]
fn type_and_const_parameters() {
    isolated(async {
        assert_eq!(generic("key", ["a", "b"]).await.unwrap(), "b");
        assert_limited(generic("key", [&1]).await);
        assert_eq!(named_in_arguments::<u8, 2>(5).await, [5, 5]);
        assert_eq!(named_in_arguments::<u8, 1>(5).await, [5]);
        assert_eq!(named_in_arguments::<i8, 2>(5).await, [0, 0]);
    });
}

#[rate_limit("1/day", key = by(text), fallback = refused, pass_args)]
async fn higher_ranked<F, G>(text: &str, by: F, also: G) -> AppResult<&str>
where
    F: for<'a> Fn(&'a str) -> &'a str,
    G: for<'a, 'b> FnOnce(&'a &'b str) -> &'b str,
{
    tokio::task::yield_now().await;
    Ok(also(&by(text)))
}

fn refused<'a, F>(text: &'a str, by: F, _: impl Sized) -> AppResult<&'a str>
where
    F: for<'b> Fn(&'b str) -> &'b str,
{
    if text == by(text) {
        return Err(AppError::Parse);
    }
    Ok(text)
}

#[rate_limit("1/day", key = (text.as_ref(), pointer(text.as_ref())))]
async fn functions(
    text: impl AsRef<str>,
    pointer: fn(&str) -> usize,
    object: &(dyn Fn(&str) -> Cow<'_, str> + '_),
    waited: impl AsyncFn(&str) -> usize,
) -> AppResult<usize> {
    Ok(pointer(&object(text.as_ref())) + waited(text.as_ref()).await)
}

#[test]
fn higher_ranked_bounds() {
    isolated(async {
        let trimmed = |text: &str| text.trim_start_matches('/').len();
        assert_eq!(higher_ranked("/a", str::trim, |text| &text[1..]).await.unwrap(), "a");
        assert_eq!(higher_ranked(" /a", str::trim, |text| text).await.unwrap(), " /a");
        let twice: &dyn Fn(&str) -> Cow<'_, str> = &|text| Cow::Owned(text.repeat(2));
        let length = async |text: &str| text.len();
        assert_eq!(functions("/a", trimmed, twice, length).await.unwrap(), 3 + 2);
        assert_limited(functions(String::from("/a"), trimmed, twice, length).await);
    });
}

#[window_limit(1, "1d", key = "<'a'><first.len()>")]
async fn lifetimes<'long: 'short, 'short>(first: &'long str, second: &'short str) -> AppResult<&'short str> {
    Ok(if first.len() > second.len() { first } else { second })
}

#[window_limit(1, "1d", fallback = length, pass_args)]
async fn elided(first: &mut &str, list: &[Cow<'_, str>]) -> usize {
    *first = "taken";
    list.len()
}

fn length(first: &mut &str, _: &[Cow<'_, str>]) -> usize {
    first.len()
}

#[test]
fn named_and_elided_lifetimes() {
    isolated(async {
        assert_eq!(lifetimes("long", &String::from("short")).await.unwrap(), "short");
        assert_limited(lifetimes("four", "").await);
        let mut text = "";
        assert_eq!(elided(&mut text, &["a".into(), String::new().into()]).await, 2);
        assert_eq!(elided(&mut text, &[]).await, 5);
    });
}

struct Pool<T, const SIZE: usize>([T; SIZE]);

impl<T: Iterator, const SIZE: usize> Pool<T, SIZE>
where
    T::Item: Display,
{
    #[count_limit(1, "1d", key = "<SIZE>:<Self::KIND>", fallback = Self::none, pass_args)]
    async fn next<U: From<T::Item>>(&mut self, index: usize) -> Option<U> {
        self.0[index].next().map(U::from)
    }

    const KIND: &'static str = "pool";

    fn none<U>(_: &mut Self, _: usize) -> Option<U> {
        None
    }
}

#[test]
fn impl_parameters() {
    isolated(async {
        let mut pool = Pool([0u8..5, 3..5]);
        assert_eq!(pool.next::<u32>(1).await, Some(3));
        assert_eq!(pool.next::<u64>(1).await, None);
        assert_eq!(Pool([[0u8].into_iter()]).next::<u8>(0).await, Some(0));
    });
}
