//! The cases, twice: under the attributes as they are, and with `charge_when` on each of them.

#![deny(warnings)]
#![allow(clippy::duplicate_mod, reason = "the cases are included once for each set of attributes")]

mod app;
mod charging;
mod plain;
