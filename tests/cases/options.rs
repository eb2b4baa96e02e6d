//! Other arguments of the attributes, in every position where they see the function's own.

use std::sync::Arc;
use std::time::Duration;

use ratelimits::Registry;

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, Text, alone, assert_limited, text};

struct User {
    id: u8,
    is_admin: bool,
}

#[count_limit(1, "1d", key = user.id, skip_when = user.is_admin)]
async fn for_others(user: &User) -> AppResult<u8> {
    Ok(user.id)
}

#[count_limit(1, "1d", skip_when = !*first && *id > 5, fallback = skipped, pass_args)]
async fn taken_apart(User { id, .. }: User, [first, _]: &[bool; 2], mut text: Text) -> Text {
    text.0 += if *first { "first" } else { "second" };
    text.0.push((b'a' + id).into());
    text
}

fn skipped(_: User, _: &[bool], text: Text) -> Text {
    text
}

#[test]
fn skip_when_sees_the_arguments() {
    alone(async {
        let [ann, root] = [false, true].map(|is_admin| User { id: 1, is_admin });
        for _ in 0..5 {
            assert_eq!(for_others(&root).await.unwrap(), 1);
        }
        assert_eq!(for_others(&ann).await.unwrap(), 1);
        assert_limited(for_others(&ann).await);
        assert_eq!(for_others(&root).await.unwrap(), 1);
        let user = |id| User { id, is_admin: false };
        assert_eq!(taken_apart(user(1), &[true, true], text("")).await, text("firstb"));
        assert_eq!(taken_apart(user(1), &[true, true], text("a")).await, text("a"));
        assert_eq!(taken_apart(user(6), &[false, true], text("")).await, text("secondg"));
    });
}

#[rate_limit("1/day", 1, key = *id, timeout = *patience, fallback = skipped_too, pass_args)]
async fn patient((id, patience): (u8, Duration), text: Text) -> Text {
    let _ = patience;
    Text(text.0 + if id == 1 { "first" } else { "second" })
}

fn skipped_too(_: (u8, Duration), text: Text) -> Text {
    text
}

#[test]
fn timeouts_are_those_of_the_arguments() {
    alone(async {
        assert_eq!(patient((1, Duration::MAX), text("a")).await, text("afirst"));
        assert_eq!(patient((2, Duration::ZERO), text("a")).await, text("asecond"));
        assert_eq!(patient((2, Duration::from_millis(1)), text("a")).await, text("a"));
    });
}

#[rate_limit("1/day", shadow)]
async fn only_watched(text: &str) -> u8 {
    text.parse().unwrap_or_default()
}

#[test]
fn shadow_refuses_nobody_and_needs_no_way_to() {
    alone(async {
        for _ in 0..3 {
            assert_eq!(only_watched("1").await, 1);
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
async fn by_a_pattern((app, _): (&App, Text)) -> bool {
    app.own.is_none()
}

fn refused((_, text): (&App, Text)) -> bool {
    text.0.is_empty()
}

#[test]
fn registries_are_those_of_the_arguments() {
    alone(async {
        let [mut one, mut two] = [App::new(), App::new()];
        assert_eq!(one.by_field().await.unwrap() + two.by_field().await.unwrap(), 2);
        assert_limited(one.by_field().await);
        assert!(one.by_expression().await.unwrap().is_none());
        *two.by_expression().await.unwrap() = Some(Arc::new(one));
        assert!(two.by_expression().await.is_err());
        let one = App::new();
        assert_eq!(
            (by_a_pattern((&one, text("a"))).await, by_a_pattern((&one, text("a"))).await),
            (true, false)
        );
        assert!(by_a_pattern((&App::new(), text("a"))).await);
    });
}

fn shared() -> Arc<Registry> {
    Arc::new(Registry::in_memory())
}

#[count_limit(1, "1d", registry = shared().as_ref(), skip_when = (id == 0), cost = (id))]
async fn in_a_temporary(id: u8) -> AppResult<u8> {
    Ok(id)
}

#[test]
fn registries_that_live_as_long_as_the_call_is_put_together() {
    alone(async {
        assert_eq!(in_a_temporary(0).await.unwrap(), 0);
        assert_eq!((in_a_temporary(1).await.unwrap(), in_a_temporary(1).await.unwrap()), (1, 1));
        assert_limited(in_a_temporary(2).await);
    });
}

#[rate_limit("1/day", 1, key = id, on_store_error = deny, fallback = |_| 0)]
#[count_limit(5, "1d", on_store_error = local, fallback = |_| 0)]
#[window_limit(5, "1d", on_store_error = allow, fallback = |_| 0)]
async fn whatever_becomes_of_the_store(id: u8) -> u8 {
    let (deny, local, allow) = (id, id, id);
    deny.max(local).max(allow)
}

#[test]
fn a_store_in_this_process_is_never_in_trouble() {
    alone(async {
        assert_eq!(whatever_becomes_of_the_store(1).await, 1);
        assert_eq!(whatever_becomes_of_the_store(1).await, 0);
    });
}
