//! Fallbacks by path.

use std::sync::Arc;

use super::limits::{count_limit, funnel_limit, rate_limit, window_limit};
use super::{AppResult, Text, assert_outputs, isolated, text};

fn synchronous() -> u8 {
    0
}

async fn asynchronous() -> u8 {
    tokio::task::yield_now().await;
    0
}

#[count_limit(1, "1d", fallback = synchronous)]
async fn to_sync() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = "asynchronous")]
async fn to_async() -> u8 {
    1
}

mod elsewhere {
    pub(super) mod inside {
        pub(in super::super) const fn zero() -> u8 {
            0
        }
    }

    pub(super) fn same<T>(value: T) -> T {
        value
    }
}

#[rate_limit("1/day", fallback = elsewhere::inside::zero)]
async fn to_path() -> u8 {
    1
}

#[funnel_limit(1, "1/day", fallback = "self::elsewhere::same::<Text>", pass_args)]
async fn to_path_with_parameters(text: Text) -> Text {
    Text(text.0 + "!")
}

#[window_limit(1, "1d", fallback = Text, pass_args)]
async fn to_constructor(text: String) -> Text {
    Text(text + "!")
}

#[window_limit(1, "1d", fallback = Vec::with_capacity, pass_args)]
async fn to_function_of_another_type(count: usize) -> Vec<u8> {
    vec![1; count]
}

#[test]
fn sync_and_async_functions() {
    isolated(async {
        assert_outputs!(
            to_sync() => 1, 0;
            to_async() => 1, 0;
        );
    });
}

#[test]
fn paths() {
    isolated(async {
        assert_outputs!(
            to_path() => 1, 0;
            to_path_with_parameters(text("a")) => text("a!"), text("a");
            to_constructor("a".to_owned()) => text("a!"), text("a");
        );
        assert_eq!(to_function_of_another_type(2).await, [1, 1]);
        assert!(to_function_of_another_type(2).await.is_empty());
    });
}

#[count_limit(1, "1d", fallback = returned, pass_args)]
async fn moved(text: Text, mut count: u8) -> (Text, u8) {
    count += 1;
    (text, count)
}

async fn returned(text: Text, count: u8) -> (Text, u8) {
    tokio::task::yield_now().await;
    (text, count)
}

#[count_limit(1, "1d", fallback = "last", pass_args)]
async fn unique(list: &mut [u8]) -> &mut u8 {
    &mut list[0]
}

fn last(list: &mut [u8]) -> &mut u8 {
    list.last_mut().unwrap()
}

#[count_limit(1, "1d", key = list.len(), fallback = push, pass_args)]
async fn unique_and_in_the_key(list: &mut Vec<Text>, text: Text) -> AppResult<()> {
    list.insert(0, text);
    list.pop();
    Ok(())
}

async fn push(list: &mut Vec<Text>, text: Text) -> AppResult<()> {
    tokio::task::yield_now().await;
    list.push(text);
    Ok(())
}

#[test]
fn arguments_are_moved() {
    isolated(async {
        assert_outputs!(moved(text("text"), 1) => (text("text"), 2), (text("text"), 1));
        let mut list = [5, 1];
        assert_eq!(*unique(&mut list).await, 5);
        assert_eq!(*unique(&mut list).await, 1);
        let mut list = vec![text("a")];
        unique_and_in_the_key(&mut list, text("b")).await.unwrap();
        unique_and_in_the_key(&mut list, text("c")).await.unwrap();
        assert_eq!(list, [text("b"), text("c")]);
    });
}

struct Api(u8);

trait Bare {
    fn bare_of_trait(&self) -> u8;
}

impl Bare for Api {
    fn bare_of_trait(&self) -> u8 {
        self.0
    }
}

impl Api {
    #[count_limit(1, "1d", fallback = Self::associated)]
    async fn by_associated_function(&self) -> u8 {
        self.0
    }

    #[count_limit(1, "1d", fallback = Self::method, pass_args)]
    async fn by_path_of_method(&self, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = <Self as Bare>::bare_of_trait, pass_args)]
    async fn by_method_of_a_trait(&self) -> u8 {
        self.0 + 1
    }

    #[count_limit(1, "1d", fallback = self.bare)]
    async fn by_method_without_arguments(&mut self, _text: Text) -> u8 {
        self.0 += 1;
        self.0
    }

    #[count_limit(1, "1d", fallback = self.method, pass_args)]
    async fn by_method(&self, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = "self.owned", pass_args)]
    async fn by_owning_method(self: Arc<Self>, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = exclaimed, pass_args)]
    async fn by_function(self, text: Text) -> Text {
        text
    }

    #[count_limit(1, "1d", fallback = self.0.count_ones)]
    async fn by_method_of_a_field(&self) -> u32 {
        u32::from(self.0)
    }

    fn associated() -> u8 {
        0
    }

    fn bare(&self) -> u8 {
        self.0 + 100
    }

    async fn method(&self, text: Text) -> (u8, Text) {
        tokio::task::yield_now().await;
        (self.0 + 1, text)
    }

    async fn owned(self: Arc<Self>, text: Text) -> (u8, Text) {
        tokio::task::yield_now().await;
        (self.0 + 1, text)
    }
}

fn exclaimed(text: Text) -> Text {
    Text(text.0 + "!")
}

#[test]
fn associated_functions() {
    isolated(async {
        let api = Api(5);
        assert_outputs!(api.by_associated_function() => 5, 0);
        let call = || api.by_path_of_method(text("a"));
        assert_outputs!(
            call() => (5, text("a")), (6, text("a"));
            api.by_method_of_a_trait() => 6, 5;
        );
    });
}

#[test]
fn methods() {
    isolated(async {
        let mut api = Api(5);
        assert_outputs!(api.by_method_without_arguments(text("")) => 6, 106);
        let call = || api.by_method(text("a"));
        assert_outputs!(
            call() => (6, text("a")), (7, text("a"));
            api.by_method_of_a_field() => 6, 2;
        );
        let shared = Arc::new(Api(1));
        assert_eq!(Arc::clone(&shared).by_owning_method(text("a")).await, (1, text("a")));
        assert_eq!(shared.by_owning_method(text("a")).await, (2, text("a")));
        assert_eq!(api.by_function(text("a")).await, text("a"));
        assert_eq!(Api(1).by_function(text("a")).await, text("a!"));
    });
}

#[count_limit(1, "1d", key = "<@ip>", fallback = synchronous)]
async fn without_context() -> u8 {
    1
}

#[test]
fn missing_key_calls_the_fallback() {
    isolated(async { assert_eq!(without_context().await, 0) });
}

async fn no_text() -> Option<&'static str> {
    tokio::task::yield_now().await;
    None
}

/// Part of the return type has no name, and nothing in the fallback's call says what it is.
#[count_limit(1, "1d", fallback = no_text)]
async fn partly_opaque() -> Option<impl std::fmt::Display> {
    Some("text")
}

#[test]
fn async_fallbacks_of_partly_opaque_outputs() {
    isolated(async {
        assert_eq!(partly_opaque().await.map(|text| text.to_string()), Some("text".to_owned()));
        assert!(partly_opaque().await.is_none());
    });
}

/// The type of the fallback's result follows from the return type.
#[count_limit(1, "1d", fallback = Default::default)]
async fn to_default() -> Option<u8> {
    Some(1)
}

#[test]
fn output_type_of_a_function_is_inferred() {
    isolated(async { assert_outputs!(to_default() => Some(1), None) });
}
