//! What is called instead.

use std::fmt::Display;
use std::sync::Arc;

use ratelimits::count_limit;

use super::{AppResult, User, alone, assert_limited};

/// Not `Clone`.
#[derive(Debug, PartialEq)]
struct Text(String);

fn sync() -> u8 {
    0
}

async fn is_async() -> u8 {
    tokio::task::yield_now().await;
    0
}

#[count_limit(1, "1d", fallback = sync)]
async fn to_sync() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = "is_async")]
async fn to_async() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = returned, pass_args)]
async fn moved(text: Text, mut count: u8) -> (Text, u8) {
    count += 1;
    (text, count)
}

async fn returned(text: Text, count: u8) -> (Text, u8) {
    (text, count)
}

#[count_limit(1, "1d", fallback = "last", pass_args)]
async fn unique(list: &mut [u8]) -> &mut u8 {
    &mut list[0]
}

fn last(list: &mut [u8]) -> &mut u8 {
    list.last_mut().unwrap()
}

struct Api(u8);

impl Api {
    #[count_limit(1, "1d", fallback = Self::associated)]
    async fn a(&self) -> u8 {
        self.0
    }

    #[count_limit(1, "1d", fallback = Self::method, pass_args)]
    async fn b(&self, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = self.bare)]
    async fn c(&mut self) -> u8 {
        self.0 += 1;
        self.0
    }

    #[count_limit(1, "1d", fallback = self.method, pass_args)]
    async fn d(&self, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = "self.owned", pass_args)]
    async fn e(self: Arc<Self>, text: Text) -> (u8, Text) {
        (self.0, text)
    }

    #[count_limit(1, "1d", fallback = free, pass_args)]
    async fn g(self, text: Text) -> Text {
        text
    }

    fn associated() -> u8 {
        0
    }

    fn bare(&self) -> u8 {
        0
    }

    async fn method(&self, text: Text) -> (u8, Text) {
        tokio::task::yield_now().await;
        (self.0 + 1, text)
    }

    async fn owned(self: Arc<Self>, text: Text) -> (u8, Text) {
        (self.0 + 1, text)
    }
}

fn free(text: Text) -> Text {
    Text(text.0 + "!")
}

fn text() -> Text {
    Text("text".to_owned())
}

#[test]
fn are_called_instead_of_the_body() {
    alone(async {
        assert_eq!((to_sync().await, to_sync().await), (1, 0));
        assert_eq!((to_async().await, to_async().await), (1, 0));
    });
}

#[test]
fn get_the_arguments_moved() {
    alone(async {
        assert_eq!(moved(text(), 1).await, (text(), 2));
        assert_eq!(moved(text(), 1).await, (text(), 1));
        let mut list = [5, 1];
        assert_eq!(*unique(&mut list).await, 5);
        assert_eq!(*unique(&mut list).await, 1);
    });
}

#[test]
fn are_methods_too() {
    alone(async {
        let mut api = Api(5);
        assert_eq!((api.a().await, api.a().await), (5, 0));
        assert_eq!((api.b(text()).await, api.b(text()).await), ((5, text()), (6, text())));
        assert_eq!((api.c().await, api.c().await), (6, 0));
        assert_eq!((api.d(text()).await, api.d(text()).await), ((6, text()), (7, text())));
        let shared = Arc::new(Api(1));
        assert_eq!(Arc::clone(&shared).e(text()).await, (1, text()));
        assert_eq!(shared.e(text()).await, (2, text()));
        assert_eq!(api.g(text()).await, text());
        assert_eq!(Api(1).g(text()).await, Text("text!".to_owned()));
    });
}

#[count_limit(1, "1d", fallback = sum, pass_args, key = "<a>:<first>")]
async fn destructured(
    (mut a, ref b): (u8, Vec<u8>),
    [first, _]: &[u8; 2],
    _: Text,
    User { id, .. }: User,
) -> u64 {
    a += 1;
    u64::from(a + b[0] + first) + id
}

fn sum(pair: (u8, Vec<u8>), _: &[u8; 2], text: Text, _user: User) -> u64 {
    pair.1.len() as u64 + text.0.len() as u64
}

#[count_limit(1, "1d", key = "<id>")]
async fn taken_apart(User { id, .. }: &User, &(a, _): &(u8, u8)) -> AppResult<u64> {
    Ok(id + u64::from(a))
}

#[test]
fn arguments_that_are_taken_apart_pass_whole() {
    alone(async {
        let call = |a| destructured((a, vec![1]), &[2, 3], text(), User { id: 10, daily: 1 });
        assert_eq!(call(1).await, 2 + 1 + 2 + 10);
        assert_eq!(call(1).await, 1 + 4);
        assert_eq!(call(2).await, 3 + 1 + 2 + 10);
        assert_eq!(taken_apart(&User { id: 1, daily: 1 }, &(1, 2)).await.unwrap(), 2);
        assert_limited(taken_apart(&User { id: 1, daily: 1 }, &(1, 2)).await);
    });
}

#[count_limit(1, "1d", key = "<@ip>", fallback = sync)]
async fn without_context() -> u8 {
    1
}

#[test]
fn answer_for_a_missing_key_too() {
    alone(async { assert_eq!(without_context().await, 0) });
}

#[count_limit(1, "1d", fallback = opaque)]
async fn opaque_output() -> impl Display {
    if false {
        return opaque();
    }
    String::from("body")
}

fn opaque() -> String {
    String::from("fallback")
}

#[test]
fn can_return_what_has_no_name() {
    alone(async {
        assert_eq!(opaque_output().await.to_string(), "body");
        assert_eq!(opaque_output().await.to_string(), "fallback");
    });
}
