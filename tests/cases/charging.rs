//! The cases with a `charge_when` that charges every call, and a `pause_when` that pauses none: the body becomes an async block and must behave the same.

use ::charging as limits;

use super::app;

#[path = "mod.rs"]
mod cases;
