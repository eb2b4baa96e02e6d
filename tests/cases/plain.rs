//! The cases as written: a prologue in front of the body.

use ratelimits as limits;

use super::app;

#[path = "binding.rs"]
mod binding;
#[path = "mod.rs"]
mod cases;
#[path = "holding/mod.rs"]
mod holding;
#[path = "pausing.rs"]
mod pausing;
#[path = "prologue.rs"]
mod prologue;
