//! The cases under the attributes as they are: a prologue in front of the body.

use ratelimits as limits;

use super::app;

#[path = "mod.rs"]
mod cases;
// With `charge_when` the body is a future in the future, and what it comes to is kept until all is given back.
#[path = "prologue.rs"]
mod prologue;
