//! The cases with `charge_when` on every attribute: the body in an async block. As every call is charged, nothing else may
//! differ.

use ::charging as limits;

use super::app;

#[path = "mod.rs"]
mod cases;
