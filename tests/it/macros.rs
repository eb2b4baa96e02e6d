//! The attributes, mostly on the memory store.

#![deny(warnings)]

/// Defines limited functions that do nothing.
macro_rules! limited {
    ($($(#[$limit:meta])+ $name:ident($($argument:ident: $type:ty),*);)*) => {$(
        $(#[$limit])+
        async fn $name($($argument: $type),*) -> AppResult<()> {
            $(let _ = $argument;)*
            Ok(())
        }
    )*};
}

mod algorithms;
mod binding;
mod buckets;
mod charging;
mod coverage;
mod keys;
mod name_clashes;
mod numbers;
mod stacks;

#[path = "../cases/app.rs"]
mod app;

use app::{AppError, AppResult, assert_admits_one, assert_limited, assert_outputs, isolated};

struct User {
    id: u64,
    daily: u32,
}
