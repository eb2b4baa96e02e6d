//! The syntax of the attributes of the `ratelimits` crate: their names, their arguments, and with the feature `parse` the parser
//! of these. The macros, the runtime and the command share it.
//!
//! Nothing here is covered by semantic versioning. Depend on `ratelimits` instead.
#![forbid(unsafe_code)]

#[cfg(feature = "parse")]
mod arguments;
mod attribute_kind;
#[cfg(feature = "parse")]
pub mod expr;
mod words;

#[cfg(feature = "parse")]
pub use arguments::{Argument, Arguments, Problem, ProblemKind};
pub use attribute_kind::{AttributeKind, CALENDAR_PERIODS, KEY_TYPES, ON_STORE_ERROR};
pub use words::{closest, closest_path, listed};
