//! All cases three times: as written, with `charge_when` and `pause_when` on every attribute, and with a `concurrency_limit` beside
//! every attribute.

#![deny(warnings)]
#![allow(clippy::duplicate_mod, reason = "the cases are included once for each set of attributes")]

mod app;
mod charging;
mod held;
mod plain;
