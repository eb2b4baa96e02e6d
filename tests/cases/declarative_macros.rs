//! Attribute arguments that come from `macro_rules!`.

use super::limits::{count_limit, rate_limit, window_limit};
use super::{AppResult, Text, assert_admits_one, assert_limited, assert_outputs, isolated, text};

macro_rules! limited {
    ($name:ident($argument:ident), $key:literal, $limit:expr, $fallback:path, $body:block) => {
        #[count_limit($limit, "1d", key = $key, fallback = $fallback, pass_args)]
        async fn $name($argument: u8) -> u8 $body
    };
    ($name:ident, $key:literal) => {
        #[count_limit(1, "1d", key = $key)]
        async fn $name(inside: u8) -> AppResult<u8> {
            Ok(inside)
        }
    };
}
limited!(from_macro(given), "<given>", 3 - 2, std::convert::identity, { 9 });
limited!(bound_inside, "<inside>");

#[test]
fn literals_expressions_and_paths() {
    isolated(async {
        assert_outputs!(from_macro(1) => 9, 1);
        assert_eq!(from_macro(2).await, 9);
        bound_inside(1).await.unwrap();
        bound_inside(2).await.unwrap();
        assert_limited(bound_inside(1).await);
    });
}

macro_rules! limited_by_everything {
    (
        $(#[$attribute:meta])* $visibility:vis fn $name:ident($($pattern:tt: $type:ty),*) -> $output:ty,
        $limit:tt per $period:expr, $key:expr, $fallback:expr, $cost:expr; $($body:tt)*
    ) => {
        $(#[$attribute])*
        #[window_limit(limit = $limit, period = $period, key = $key, cost = $cost, fallback = $fallback, pass_args)]
        $visibility async fn $name($($pattern: $type),*) -> $output {
            $($body)*
        }
    };
}
limited_by_everything! {
    /// Documented.
    #[must_use]
    pub(super) fn everything((id, ref name): (u8, Text), list: Vec<u8>) -> Vec<u8>,
    2 per "1d", (id, name.0.as_str()), everything_refused, id;
    [list, vec![id; name.0.len()]].concat()
}

fn everything_refused(_: (u8, Text), list: Vec<u8>) -> Vec<u8> {
    list
}

#[test]
fn patterns_types_and_attributes() {
    isolated(async {
        assert_outputs!(everything((1, text("a")), vec![]) => [1], [1]);
        assert!(everything((1, text("a")), vec![]).await.is_empty());
        assert_eq!(everything((3, text("a")), vec![3]).await, [3]);
    });
}

macro_rules! whole_item {
    ($key:expr; $item:item) => {
        #[rate_limit("1/day", key = $key)]
        $item
    };
}
whole_item! {
    id;
    async fn item(id: u8) -> AppResult<u8> {
        let next = id + 1;
        Ok(next)
    }
}

macro_rules! whole_attribute {
    ($(#[$limit:meta])+ $name:ident) => {
        $(#[$limit])+
        async fn $name(id: u8) -> AppResult<u8> {
            Ok(id)
        }
    };
}
whole_attribute!(
    #[count_limit(1, "1d", key = 1 + 1)]
    #[rate_limit("1/day", burst = 2)]
    attribute
);

#[test]
fn whole_items_and_attributes() {
    isolated(async {
        assert_admits_one!(
            item(1) => 2,
            attribute(1) => 1,
        );
    });
}

macro_rules! methods {
    ($self:ident, $type:ty, $field:ident, $fallback:ident, $($name:ident $limit:literal)*) => {
        impl $type {
            $(
                #[count_limit($limit, "1d", key = $self.$field, fallback = $self.$fallback, pass_args)]
                async fn $name(&$self, text: Text) -> Option<Text> {
                    Some(text)
                }
            )*

            fn $fallback(&self, _: Text) -> Option<Text> {
                None
            }
        }
    };
}

struct Api {
    id: u8,
}
methods!(self, Api, id, refused, once 1 twice 2);

#[test]
fn methods_and_self() {
    isolated(async {
        let api = Api { id: 1 };
        assert_outputs!(api.once(text("a")) => Some(text("a")), None);
        api.twice(text("a")).await.unwrap();
        api.twice(text("a")).await.unwrap();
        assert_eq!(api.twice(text("a")).await, None);
    });
}

/// The closure and the limit have the hygiene of the call site, the signature has that of the macro.
macro_rules! hygienic {
    ($name:ident, $argument:ident, $limit:expr, $closure:expr) => {
        #[count_limit($limit, "1d", key = ($argument, id), fallback = $closure)]
        async fn $name($argument: u8, id: u8) -> u8 {
            $argument + id
        }
    };
}
hygienic!(mixed, id, u32::from(id > 0), |_| id + 100);

#[test]
fn mixed_hygiene() {
    isolated(async { assert_eq!((mixed(1, 2).await, mixed(1, 2).await, mixed(0, 2).await), (3, 101, 100)) });
}
