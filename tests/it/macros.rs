//! The attributes, on the in-memory store.

#![deny(warnings)]

mod algorithms;
mod buckets;
mod charging;
mod claims;
mod keys;
mod names;
mod numbers;
mod stacks;

// The same application as that of the cases of all functions.
#[path = "../cases/app.rs"]
mod app;

use app::{AppError, AppResult, alone, assert_limited};

struct User {
    id: u64,
    daily: u32,
}
