//! The attributes, mostly on the memory store.

#![deny(warnings)]

mod algorithms;
mod buckets;
mod charging;
mod keys;
mod name_clashes;
mod names;
mod numbers;
mod stacks;

#[path = "../cases/app.rs"]
mod app;

use app::{AppError, AppResult, assert_admits_one, assert_limited, assert_outputs, isolated};

struct User {
    id: u64,
    daily: u32,
}
