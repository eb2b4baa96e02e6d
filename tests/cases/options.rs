//! `skip_when`, `timeout`, `shadow`, `registry`, `cost` and `on_store_error`.

use std::sync::Arc;
use std::time::Duration;

use ratelimits::Registry;

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

struct User {
    id: u8,
    is_admin: bool,
}

#[count_limit(1, "1d", key = user.id, skip_when = user.is_admin)]
async fn unless_admin(user: &User) -> AppResult<u8> {
    Ok(user.id)
}

#[count_limit(1, "1d", skip_when = !*first && *id > 5, fallback = skipped, pass_args)]
async fn destructured(User { id, .. }: User, [first, _]: &[bool; 2], mut text: Text) -> Text {
    text.0 += if *first { "first" } else { "second" };
    text.0.push((b'a' + id).into());
    text
}

fn skipped(_: User, _: &[bool], text: Text) -> Text {
    text
}

#[test]
fn skip_when_sees_arguments() {
    isolated(async {
        let [ann, root] = [false, true].map(|is_admin| User { id: 1, is_admin });
        for _ in 0..5 {
            assert_eq!(unless_admin(&root).await.unwrap(), 1);
        }
        assert_admits_one!(unless_admin(&ann) => 1);
        assert_eq!(unless_admin(&root).await.unwrap(), 1);
        let user = |id| User { id, is_admin: false };
        assert_eq!(destructured(user(1), &[true, true], text("")).await, text("firstb"));
        assert_eq!(destructured(user(1), &[true, true], text("a")).await, text("a"));
        assert_eq!(destructured(user(6), &[false, true], text("")).await, text("secondg"));
    });
}

#[rate_limit("1/day", 1, key = *id, timeout = *max_wait, fallback = timed_out, pass_args)]
async fn waiting((id, max_wait): (u8, Duration), text: Text) -> Text {
    let _ = max_wait;
    Text(text.0 + if id == 1 { "first" } else { "second" })
}

fn timed_out(_: (u8, Duration), text: Text) -> Text {
    text
}

#[test]
fn timeout_from_arguments() {
    isolated(async {
        assert_eq!(waiting((1, Duration::MAX), text("a")).await, text("afirst"));
        assert_eq!(waiting((2, Duration::ZERO), text("a")).await, text("asecond"));
        assert_eq!(waiting((2, Duration::from_millis(1)), text("a")).await, text("a"));
    });
}

#[rate_limit("1/day", shadow)]
async fn observed(text: &str) -> u8 {
    text.parse().unwrap_or_default()
}

#[test]
fn shadow_never_refuses() {
    isolated(async {
        for _ in 0..3 {
            assert_eq!(observed("1").await, 1);
        }
    });
}

struct App {
    registry: Registry,
    own: Option<Arc<App>>,
}

impl App {
    fn new() -> Self {
        App { registry: Registry::in_memory(), own: None }
    }

    #[count_limit(1, "1d", registry = &self.registry)]
    async fn by_field(&self) -> AppResult<u8> {
        Ok(1)
    }

    #[count_limit(1, "1d", registry = self.own.as_deref().unwrap_or(self).registry())]
    async fn by_expression(&mut self) -> AppResult<&mut Option<Arc<App>>> {
        Ok(&mut self.own)
    }

    fn registry(&self) -> &Registry {
        &self.registry
    }
}

#[count_limit(1, "1d", registry = &app.registry, fallback = refused, pass_args)]
#[window_limit(1, "1d", registry = &app.registry, fallback = refused, pass_args)]
async fn by_pattern((app, _): (&App, Text)) -> bool {
    app.own.is_none()
}

fn refused((_, text): (&App, Text)) -> bool {
    text.0.is_empty()
}

#[test]
fn registry_from_arguments() {
    isolated(async {
        let [mut one, mut two] = [App::new(), App::new()];
        assert_eq!(one.by_field().await.unwrap() + two.by_field().await.unwrap(), 2);
        assert_limited(one.by_field().await);
        assert!(one.by_expression().await.unwrap().is_none());
        *two.by_expression().await.unwrap() = Some(Arc::new(one));
        assert!(two.by_expression().await.is_err());
        let one = App::new();
        assert_eq!((by_pattern((&one, text("a"))).await, by_pattern((&one, text("a"))).await), (true, false));
        assert!(by_pattern((&App::new(), text("a"))).await);
    });
}

fn shared() -> Arc<Registry> {
    Arc::new(Registry::in_memory())
}

#[count_limit(1, "1d", registry = shared().as_ref(), skip_when = (id == 0), cost = (id))]
async fn temporary(id: u8) -> AppResult<u8> {
    Ok(id)
}

#[test]
fn temporary_registry() {
    isolated(async {
        assert_eq!(temporary(0).await.unwrap(), 0);
        assert_eq!((temporary(1).await.unwrap(), temporary(1).await.unwrap()), (1, 1));
        assert_limited(temporary(2).await);
    });
}

#[rate_limit("1/day", 1, key = id, on_store_error = deny, fallback = |_| 0)]
#[count_limit(5, "1d", on_store_error = local, fallback = |_| 0)]
#[window_limit(5, "1d", on_store_error = allow, fallback = |_| 0)]
async fn with_each_mode(id: u8) -> u8 {
    let (deny, local, allow) = (id, id, id);
    deny.max(local).max(allow)
}

struct Shelf<T>(T);

impl<T: AsRef<str>> Shelf<T> {
    #[count_limit(2, "1d", key = self.0.as_ref(), notify_at = 0.5, registry = registry)]
    #[window_limit(5, "1d", notify_at = 1.0 / 3.0, registry = registry)]
    async fn take(&mut self, registry: &Registry, (mut book, _): (String, u8)) -> AppResult<String> {
        book.push_str(self.0.as_ref());
        Ok(book)
    }
}

#[test]
fn observers_are_told_by_methods() {
    isolated(async {
        let told = Arc::<std::sync::Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&told);
        let observed = Registry::builder().observer(move |it| {
            if it.outcome.name() == "near_limit" {
                seen.lock().unwrap().push(it.key().join("/"));
            }
        });
        let registry = observed.in_memory();
        for shelf in ["a", "b"] {
            assert_eq!(
                Shelf(shelf).take(&registry, ("book ".to_owned(), 1)).await.unwrap(),
                format!("book {shelf}")
            );
        }
        assert_eq!(*told.lock().unwrap(), ["a", "b", ""]);
    });
}

#[test]
fn memory_store_ignores_on_store_error() {
    isolated(async {
        assert_outputs!(with_each_mode(1) => 1, 0);
    });
}
