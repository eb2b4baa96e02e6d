//! Every kind of `self`.

use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;

use super::limits::count_limit;
use super::{AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

#[derive(Debug, PartialEq)]
struct Counter {
    id: u8,
    count: u8,
}

fn counter(id: u8) -> Counter {
    Counter { id, count: 0 }
}

impl Counter {
    #[count_limit(1, "1d", key = self.id)]
    async fn shared(&self, step: u8) -> AppResult<u8> {
        Ok(self.count + step)
    }

    #[count_limit(1, "1d", key = "<self.id>")]
    async fn unique(&mut self, step: u8) -> AppResult<&mut u8> {
        self.count += step;
        Ok(&mut self.count)
    }

    #[count_limit(1, "1d", key = self.id)]
    async fn owned(self, step: u8) -> AppResult<Self> {
        Ok(Counter { count: self.count + step, ..self })
    }

    #[count_limit(1, "1d", key = self.id, fallback = Self::unchanged, pass_args)]
    async fn mutable(mut self, step: u8) -> Self {
        self.count += step;
        self
    }

    #[count_limit(1, "1d", key = self.id, fallback = self.same, pass_args)]
    async fn boxed(mut self: Box<Self>, step: u8) -> Box<Self> {
        self.count += step;
        self
    }

    #[count_limit(1, "1d", key = "<self.id>", fallback = Self::nothing, pass_args)]
    async fn in_arc(self: Arc<Self>, step: u8) -> (Arc<Self>, u8) {
        let count = self.count + step;
        (self, count)
    }

    #[count_limit(1, "1d", key = self.id, fallback = self.zero)]
    async fn in_rc(self: Rc<Self>) -> u8 {
        self.id
    }

    #[count_limit(1, "1d", key = self.id, fallback = self.zero)]
    async fn borrowed(self: &Arc<Self>) -> u8 {
        self.id
    }

    #[count_limit(1, "1d", key = self.id)]
    async fn pinned(mut self: Pin<&mut Self>, step: u8) -> AppResult<u8> {
        self.count += step;
        Ok(self.count)
    }

    #[count_limit(1, "1d", fallback = Self::zero_without_self)]
    async fn without_self() -> u8 {
        1
    }

    fn unchanged(self, _: u8) -> Self {
        self
    }

    #[expect(clippy::unnecessary_box_returns, reason = "what the body returns")]
    fn same(self: Box<Self>, _: u8) -> Box<Self> {
        self
    }

    async fn nothing(self: Arc<Self>, _: u8) -> (Arc<Self>, u8) {
        tokio::task::yield_now().await;
        (self, 0)
    }

    fn zero(&self) -> u8 {
        self.count
    }

    fn zero_without_self() -> u8 {
        0
    }
}

#[test]
fn self_by_reference() {
    isolated(async {
        let mut counter = counter(1);
        assert_admits_one!(counter.shared(1) => 1);
        *counter.unique(1).await.unwrap() += 1;
        assert_eq!(counter.count, 2);
        assert_limited(counter.unique(1).await);
    });
}

#[test]
fn self_by_value() {
    isolated(async {
        assert_eq!(counter(1).owned(1).await.unwrap().count, 1);
        assert_limited(counter(1).owned(1).await);
        assert_eq!(counter(1).mutable(1).await.count, 1);
        assert_eq!(counter(1).mutable(1).await.count, 0);
    });
}

#[test]
fn smart_pointer_receivers() {
    isolated(async {
        assert_eq!(Box::new(counter(1)).boxed(1).await.count, 1);
        assert_eq!(Box::new(counter(1)).boxed(1).await, Box::new(counter(1)));
        let shared = Arc::new(counter(1));
        assert_outputs!(shared.borrowed() => 1, 0);
        let (shared, count) = shared.in_arc(5).await;
        assert_eq!((shared.in_arc(5).await.1, count), (0, 5));
        let shared = Rc::new(counter(1));
        assert_eq!((Rc::clone(&shared).in_rc().await, shared.in_rc().await), (1, 0));
        let mut pinned = pin!(counter(1));
        assert_admits_one!(pinned.as_mut().pinned(1) => 1);
    });
}

#[test]
fn associated_functions() {
    isolated(async { assert_eq!((Counter::without_self().await, Counter::without_self().await), (1, 0)) });
}

struct Named<'a, T: ?Sized> {
    name: &'a str,
    value: &'a mut T,
}

impl<T: ?Sized + Extend<u8>> Named<'_, T> {
    #[count_limit(1, "1d", key = "<self.name>:<number>", fallback = Self::kept, pass_args)]
    async fn push(&mut self, number: u8, text: Text) -> Option<Text> {
        self.value.extend([number]);
        drop(text);
        None
    }

    fn kept(&mut self, number: u8, text: Text) -> Option<Text> {
        (self.name.len() > usize::from(number)).then_some(text)
    }
}

#[test]
fn generic_self_type() {
    isolated(async {
        let mut list = vec![];
        let mut named = Named { name: "list", value: &mut list };
        assert_eq!(named.push(1, text("a")).await, None);
        assert_eq!(named.push(1, text("b")).await, Some(text("b")));
        assert_eq!(list, [1]);
    });
}
