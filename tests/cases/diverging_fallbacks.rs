//! Fallbacks that never return.

use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::limits::count_limit;
use super::{AppResult, Text, isolated, text};

fn never() -> ! {
    panic!("limited")
}

fn never_with(Text(text): Text) -> ! {
    panic!("limited: {text}")
}

async fn never_async() -> ! {
    tokio::task::yield_now().await;
    panic!("limited")
}

#[count_limit(1, "1d", fallback = never)]
async fn to_never() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = never_with, pass_args)]
async fn to_never_with_arguments(text: Text) -> AppResult<Text> {
    Ok(text)
}

#[count_limit(1, "1d", fallback = never_async)]
async fn to_async_never<T: Default>() -> Option<T> {
    Some(T::default())
}

#[count_limit(1, "1d", fallback = never)]
async fn to_never_from_unit() {}

#[count_limit(1, "1d", fallback = never)]
async fn to_never_from_opaque() -> impl Display {
    1
}

#[count_limit(1, "1d", fallback = never)]
async fn to_never_from_partly_opaque() -> Option<impl Display> {
    Some(1)
}

#[count_limit(1, "1d", fallback = |_| never())]
async fn to_never_by_closure() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = |error| std::process::exit(i32::from(error.is_limited())))]
async fn to_exit() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = async |_| never_async().await)]
async fn to_never_by_async_closure() -> Option<&'static str> {
    Some("body")
}

struct Fatal(&'static str);

impl Fatal {
    #[count_limit(1, "1d", fallback = Self::never, pass_args)]
    async fn by_path(&self, code: u8) -> u8 {
        code
    }

    #[count_limit(1, "1d", fallback = self.never, pass_args)]
    async fn by_method(&self, code: u8) -> u8 {
        code
    }

    fn never(&self, code: u8) -> ! {
        panic!("{} {code}", self.0)
    }
}

#[test]
fn fallbacks_may_never_return() {
    isolated(async {
        assert_eq!((to_exit().await, to_never_by_async_closure().await), (1, Some("body")));
    });
    macro_rules! assert_panics {
        ($($call:expr => $text:expr),+ $(,)?) => {$(
            let calls = || isolated(async {
                _ = $call.await;
                _ = $call.await;
            });
            let panic = catch_unwind(AssertUnwindSafe(calls)).unwrap_err();
            let literal = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let text = literal.or_else(|| panic.downcast_ref::<String>().cloned());
            assert_eq!(text.as_deref(), Some($text), "{}", stringify!($call));
        )+};
    }
    assert_panics!(
        to_never() => "limited",
        to_async_never::<u8>() => "limited",
        to_never_from_unit() => "limited",
        to_never_from_opaque() => "limited",
        to_never_from_partly_opaque() => "limited",
        to_never_by_closure() => "limited",
        to_never_by_async_closure() => "limited",
    );
    assert_panics!(to_never_with_arguments(text("a")) => "limited: a", Fatal("a").by_path(3) => "a 3", Fatal("b").by_method(3) => "b 3");
}
