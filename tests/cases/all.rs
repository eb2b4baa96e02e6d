//! All cases twice: as written, and with `charge_when` and `pause_when` on every attribute.

#![deny(warnings)]
#![allow(clippy::duplicate_mod, reason = "the cases are included once for each set of attributes")]

mod app;
mod charging;
mod plain;
