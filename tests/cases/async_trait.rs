//! Methods that `#[async_trait]` rewrites before our attributes see them.

use std::fmt::Display;
use std::rc::Rc;
use std::sync::Arc;

use async_trait::async_trait;

use super::limits::{count_limit, rate_limit};
use super::{AppError, AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

struct User {
    id: u64,
    list: Vec<u8>,
}

fn user(id: u64) -> User {
    User { id, list: vec![1] }
}

#[async_trait]
trait Service: Send + Sync + Sized + 'static {
    async fn by_self(&self) -> AppResult<u64>;
    async fn change(&mut self, number: u8) -> AppResult<&mut u8>;
    async fn owned(self, text: Text) -> (Self, Text);
    async fn shared(self: Arc<Self>, text: Text) -> (Arc<Self>, Text);
    async fn boxed(self: Box<Self>, id: u8) -> AppResult<Box<Self>>;
    async fn associated(id: u8) -> AppResult<u8>;

    #[count_limit(1, "1d", fallback = self.refused, pass_args)]
    async fn provided(&self, text: Text) -> Text {
        drop(text);
        Text(String::new())
    }

    async fn refused(&self, text: Text) -> Text {
        text
    }
}

#[async_trait]
impl Service for User {
    #[count_limit(1, "1d", key = self.id)]
    async fn by_self(&self) -> AppResult<u64> {
        tokio::task::yield_now().await;
        Ok("1".parse::<u64>()? + self.id)
    }

    #[count_limit(1, "1d", key = "<self.list.len()>:<number>")]
    async fn change(&mut self, mut number: u8) -> AppResult<&mut u8> {
        number += 1;
        self.list[0] = number;
        Ok(&mut self.list[0])
    }

    #[count_limit(1, "1d", fallback = Self::same, pass_args)]
    async fn owned(mut self, text: Text) -> (Self, Text) {
        self.id += 1;
        (self, Text(text.0 + "!"))
    }

    #[rate_limit("1/day", key = self.id, fallback = self.same_shared, pass_args)]
    async fn shared(self: Arc<Self>, text: Text) -> (Arc<Self>, Text) {
        (self, Text(text.0 + "!"))
    }

    #[rate_limit("1/day", key = (self.id, id))]
    async fn boxed(self: Box<Self>, id: u8) -> AppResult<Box<Self>> {
        if id == 0 {
            return Err(AppError::Parse);
        }
        Ok(self)
    }

    #[rate_limit("1/day", key = id)]
    async fn associated(id: u8) -> AppResult<u8> {
        Ok(id)
    }
}

impl User {
    fn same(self, text: Text) -> (Self, Text) {
        (self, text)
    }

    async fn same_shared(self: Arc<Self>, text: Text) -> (Arc<Self>, Text) {
        tokio::task::yield_now().await;
        (self, text)
    }
}

#[test]
fn every_receiver() {
    isolated(async {
        assert_eq!(user(1).by_self().await.unwrap(), 2);
        assert_admits_one!(user(2).by_self() => 3);
        let mut changed = user(1);
        *changed.change(4).await.unwrap() += 1;
        assert_eq!(changed.list, [6]);
        assert_limited(changed.change(4).await);
        assert_eq!(user(1).owned(text("a")).await.1, text("a!"));
        assert_eq!(user(1).owned(text("a")).await.1, text("a"));
        let shared = Arc::new(user(1));
        let (shared, added) = shared.shared(text("a")).await;
        assert_eq!((shared.shared(text("a")).await.1, added), (text("a"), text("a!")));
        assert_eq!(Box::new(user(1)).boxed(1).await.unwrap().id, 1);
        assert!(matches!(Box::new(user(1)).boxed(1).await, Err(AppError::Refused(_))));
        assert!(matches!(Box::new(user(1)).boxed(0).await, Err(AppError::Parse)));
        assert_admits_one!(User::associated(1) => 1);
        assert_outputs!(user(1).provided(text("a")) => text(""), text("a"));
    });
}

struct Path<T>(T);

#[async_trait]
trait Generic<T> {
    async fn generic<U: Display + Send, const N: usize>(&self, parts: [U; N]) -> AppResult<T>;
}

#[async_trait]
impl<T: From<u8> + Send> Generic<T> for User {
    #[count_limit(1, "1d", key = "<parts[0]>:<self.id>")]
    async fn generic<U: Display + Send, const N: usize>(&self, parts: [U; N]) -> AppResult<T> {
        drop(parts);
        Ok(T::from(u8::try_from(N).unwrap()))
    }
}

#[async_trait]
trait Handler {
    async fn destructured(&self, path: Path<u64>, pair: (u8, Text)) -> String;
    async fn lifetimes<'a>(&self, first: &'a str, second: &str) -> AppResult<&'a str>;
    async fn opaque(&self, part: &(dyn Display + Sync), list: Vec<u8>) -> AppResult<Box<dyn Display + Send>>;
    async fn unit(&self, log: &mut String);
    async fn with_closure(&self, path: Path<u64>, text: Text) -> u64;
    async fn only_in_attribute(&self, id: u8, number: Option<u8>) -> AppResult<u8>;
}

#[async_trait]
impl Handler for User {
    #[count_limit(1, "1d", key = "<id>:<a>", fallback = joined, pass_args)]
    async fn destructured(&self, Path(id): Path<u64>, (mut a, ref b): (u8, Text)) -> String {
        a += 1;
        format!("{} {id} {a} {}", self.id, b.0)
    }

    #[count_limit(1, "1d", key = "<first>")]
    async fn lifetimes<'a>(&self, first: &'a str, _: &str) -> AppResult<&'a str> {
        Ok(first)
    }

    #[count_limit(1, "1d", key = (part, list.len()))]
    async fn opaque(&self, part: &(dyn Display + Sync), list: Vec<u8>) -> AppResult<Box<dyn Display + Send>> {
        if list.is_empty() {
            return Ok(Box::new(part.to_string()));
        }
        Ok(Box::new(list.len()))
    }

    #[count_limit(1, "1d", fallback = refused_unit, pass_args)]
    async fn unit(&self, log: &mut String) {
        log.push('!');
    }

    #[count_limit(1, "1d", key = id, fallback = |_| id + first.len() as u64)]
    async fn with_closure(&self, Path(id): Path<u64>, Text(first): Text) -> u64 {
        first.len() as u64
    }

    #[count_limit(1, "1d", key = "<id>", skip_when = number.is_some())]
    async fn only_in_attribute(&self, id: u8, number: Option<u8>) -> AppResult<u8> {
        Ok(1)
    }
}

fn joined(Path(id): Path<u64>, (a, b): (u8, Text)) -> String {
    format!("{id} {a} {}", b.0)
}

fn refused_unit(log: &mut String) {
    log.push('?');
}

#[test]
fn patterns_generics_and_lifetimes() {
    isolated(async {
        let user = user(1);
        assert_eq!(Generic::<u16>::generic(&user, ["a", "b"]).await.unwrap(), 2);
        assert_limited(Generic::<u16>::generic(&user, ['a']).await);
        let handler: &dyn Handler = &user;
        let destructured = |id| handler.destructured(Path(id), (2, text("b")));
        assert_outputs!(destructured(5) => "1 5 3 b", "5 2 b");
        assert_eq!(destructured(6).await, "1 6 3 b");
        assert_eq!(handler.lifetimes("first", &String::from("second")).await.unwrap(), "first");
        assert_limited(handler.lifetimes("first", "").await);
        assert_eq!(handler.opaque(&"part", vec![]).await.unwrap().to_string(), "part");
        assert!(handler.opaque(&"part", vec![]).await.is_err());
        let mut log = String::new();
        handler.unit(&mut log).await;
        handler.unit(&mut log).await;
        assert_eq!(log, "!?");
    });
}

#[async_trait(?Send)]
trait NonSend {
    async fn with_fallback(&self, id: Rc<u8>) -> AppResult<u8>;

    #[count_limit(1, "1d", key = id)]
    async fn provided_non_send(&self, id: Rc<u8>) -> AppResult<Rc<u8>> {
        Ok(id)
    }
}

#[async_trait(?Send)]
impl NonSend for User {
    #[count_limit(1, "1d", key = id, fallback = |_| Ok(0))]
    async fn with_fallback(&self, id: Rc<u8>) -> AppResult<u8> {
        tokio::task::yield_now().await;
        Ok(*id)
    }
}

#[test]
fn non_send_futures() {
    isolated(async {
        let object: &dyn NonSend = &user(1);
        assert_eq!(object.with_fallback(Rc::new(1)).await.unwrap(), 1);
        assert_eq!(object.with_fallback(Rc::new(1)).await.unwrap(), 0);
        assert_eq!(*object.provided_non_send(Rc::new(1)).await.unwrap(), 1);
        assert_limited(object.provided_non_send(Rc::new(1)).await);
    });
}

#[test]
fn closure_fallbacks_see_patterns() {
    isolated(async {
        let user = user(1);
        assert_outputs!(user.with_closure(Path(1), text("ab")) => 2, 3);
    });
}

#[test]
fn arguments_used_only_by_the_attribute() {
    isolated(async {
        let user = user(1);
        assert_admits_one!(user.only_in_attribute(1, None) => 1);
        assert_eq!(user.only_in_attribute(1, Some(1)).await.unwrap(), 1);
        assert_eq!(user.only_in_attribute(2, None).await.unwrap(), 1);
    });
}
