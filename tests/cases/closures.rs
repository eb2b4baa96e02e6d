//! Closures as fallbacks.

use std::cell::Cell;
use std::fmt::Display;

use super::limits::{count_limit, rate_limit};
use super::{AppError, AppResult, Text, assert_outputs, isolated, text};

#[count_limit(1, "1d", fallback = |_| 0)]
async fn ignoring_error() -> u8 {
    1
}

#[count_limit(1, "1d", fallback = |error| Err(error.to_string()))]
async fn inferred() -> Result<u8, String> {
    Ok(1)
}

#[count_limit(1, "1d", fallback = |error: ratelimits::Error| -> AppResult<bool> { Err(error.into()) })]
async fn annotated() -> AppResult<bool> {
    Ok(true)
}

#[count_limit(1, "1d", key = "<@user>", fallback = |error| {
    if error.is_limited() {
        return "limited";
    }
    match error {
        ratelimits::Error::MissingKey(_) => "missing",
        _ => "another",
    }
})]
async fn by_kind() -> &'static str {
    "body"
}

#[test]
fn error_is_passed_by_value() {
    isolated(async {
        assert_outputs!(ignoring_error() => 1, 0);
        assert_eq!(inferred().await, Ok(1));
        assert!(inferred().await.unwrap_err().contains("inferred"));
        assert!(annotated().await.unwrap());
        assert!(matches!(annotated().await, Err(AppError::Refused(error)) if error.is_limited()));
        assert_eq!(by_kind().await, "missing");
        let context = ratelimits::RequestContext::new().with_user("ann");
        assert_eq!(context.scope(async { (by_kind().await, by_kind().await) }).await, ("body", "limited"));
    });
}

#[count_limit(1, "1d", fallback = |_| text)]
async fn moving(text: Text, mut more: String) -> Text {
    more.push_str(&text.0);
    Text(more)
}

#[count_limit(1, "1d", fallback = |_| { list.push(1); list.last_mut() })]
async fn changing(list: &mut Vec<u8>) -> Option<&mut u8> {
    list.first_mut()
}

#[rate_limit("1/day", key = (a, b[0]), fallback = move |_| a + b[1] + mutable)]
async fn destructured((a, ref b): (u8, [u8; 2]), _: Text, mut mutable: u8) -> u8 {
    mutable += 1;
    a + b[0] + mutable
}

#[rate_limit("1/day", fallback = |_| count.set(count.get() + 10))]
async fn to_unit(count: &Cell<u8>) {
    count.set(count.get() + 1);
}

#[test]
fn closures_capture_arguments() {
    isolated(async {
        assert_outputs!(moving(text("a"), "b".to_owned()) => text("ba"), text("a"));
        let mut list = vec![5];
        *changing(&mut list).await.unwrap() += 1;
        *changing(&mut list).await.unwrap() += 1;
        assert_eq!(list, [6, 2]);
        assert_outputs!(destructured((1, [2, 3]), text(""), 4) => 1 + 2 + 5, 1 + 3 + 4);
        let count = Cell::new(0);
        to_unit(&count).await;
        to_unit(&count).await;
        assert_eq!(count.get(), 11);
    });
}

struct Api {
    busy: &'static str,
}

impl Api {
    #[count_limit(1, "1d", fallback = |error| self.busy(&error, text))]
    async fn borrowed(&self, text: Text) -> String {
        text.0
    }

    #[count_limit(1, "1d", fallback = |_| self)]
    async fn owned(mut self) -> Self {
        self.busy = "no";
        self
    }

    #[count_limit(1, "1d", fallback = |error| Self::is_limited(error.is_limited()))]
    async fn associated() -> bool {
        false
    }

    fn busy(&self, error: &ratelimits::Error, Text(text): Text) -> String {
        format!("{} {} {text}", self.busy, error.is_limited())
    }

    fn is_limited(limited: bool) -> bool {
        limited
    }
}

#[test]
fn closures_capture_self() {
    isolated(async {
        let api = Api { busy: "busy" };
        assert_outputs!(api.borrowed(text("a")) => "a", "busy true a");
        assert_eq!(api.owned().await.busy, "no");
        assert_eq!(Api { busy: "busy" }.owned().await.busy, "busy");
        assert!(!Api::associated().await);
        assert!(Api::associated().await);
    });
}

async fn later<T>(value: T) -> T {
    tokio::task::yield_now().await;
    value
}

#[count_limit(1, "1d", fallback = |_| later(text))]
async fn to_async_function(text: Text) -> Text {
    Text(text.0 + "!")
}

#[count_limit(1, "1d", fallback = |error| async move {
    let limited = later(error.is_limited()).await;
    Text(format!("{limited} {}", text.0))
})]
async fn to_async_block(text: Text) -> Text {
    text
}

#[test]
fn closures_may_be_async() {
    isolated(async {
        assert_outputs!(
            to_async_function(text("a")) => text("a!"), text("a");
            to_async_block(text("a")) => text("a"), text("true a");
        );
    });
}

#[count_limit(1, "1d", fallback = |error| -> AppResult<Box<dyn Display + Send>> {
    Ok(Box::new(error.is_limited()))
})]
async fn coerced(number: u8) -> AppResult<Box<dyn Display + Send>> {
    Ok(Box::new(number))
}

#[count_limit(1, "1d", fallback = |_| Ok("7".parse()?))]
async fn inferred_from_the_output() -> AppResult<u32> {
    Ok(1)
}

#[count_limit(1, "1d", fallback = |_| (first, [].iter()))]
async fn borrowing<'a>(first: &'a str, list: &'a [u8]) -> (&'a str, std::slice::Iter<'a, u8>) {
    (first, list.iter())
}

#[test]
fn output_type_is_inferred() {
    isolated(async {
        assert_eq!(coerced(1).await.unwrap().to_string(), "1");
        assert_eq!(coerced(1).await.unwrap().to_string(), "true");
        assert_eq!(inferred_from_the_output().await.unwrap(), 1);
        assert_eq!(inferred_from_the_output().await.unwrap(), 7);
        let text = String::from("text");
        assert_eq!(borrowing(&text, &[1, 2]).await.1.len(), 2);
        assert_eq!(borrowing(&text, &[1, 2]).await.1.len(), 0);
    });
}

#[count_limit(1, "1d", cost = days, fallback = passed, pass_args)]
#[rate_limit("1/h", cost = hours, fallback = |_| format!("{first} {}", second.0))]
async fn beside_passing((first, second): (u8, Text), hours: u8, days: u8) -> String {
    format!("{first} and {}", second.0)
}

fn passed((first, _): (u8, Text), _: u8, _: u8) -> String {
    first.to_string()
}

#[test]
fn closures_beside_pass_args() {
    isolated(async {
        let call = |hours, days| beside_passing((1, text("a")), hours, days);
        assert_eq!(call(2, 0).await, "1 a");
        assert_eq!(call(0, 2).await, "1");
        assert_eq!(call(1, 1).await, "1 and a");
    });
}

#[count_limit(1, "1d", fallback = |error| -> AppResult<Box<dyn Display + Send>> { match error {
    ratelimits::Error::Limited(_) => if 1 > 0 { Ok(Box::new('l')) } else { Ok(Box::new(1)) },
    other => Err(other.into()),
} })]
async fn boxed_by_kind() -> AppResult<Box<dyn Display + Send>> {
    Ok(Box::new("b"))
}

#[count_limit(1, "1d", fallback = |_| -> Option<&str> { name.push('!'); Some(name) })]
async fn exclaiming(name: &mut String) -> Option<&str> {
    Some(name)
}

#[count_limit(1, "1d", fallback = |_| unreachable!("limited"))]
async fn panicking() -> Option<u8> {
    Some(1)
}

#[count_limit(1, "1d", fallback = |_| { unreachable!("limited") })]
async fn panicking_in_a_block() -> Option<u8> {
    Some(1)
}

fn consume(error: ratelimits::Error) -> bool {
    let is_limited = error.is_limited();
    drop(error);
    is_limited
}

#[count_limit(1, "1d", fallback = |error| consume(error))]
async fn by_value() -> bool {
    false
}

#[test]
fn output_is_coerced() {
    isolated(async {
        assert_eq!(boxed_by_kind().await.unwrap().to_string(), "b");
        assert_eq!(boxed_by_kind().await.unwrap().to_string(), "l");
        let mut name = String::from("ann");
        assert_outputs!(exclaiming(&mut name) => Some("ann"), Some("ann!"));
        assert_eq!((panicking().await, panicking_in_a_block().await), (Some(1), Some(1)));
        assert_outputs!(by_value() => false, true);
    });
}
