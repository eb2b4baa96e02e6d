//! All cases three times: as written, with `charge_when` and `pause_when` on every attribute, and with a `concurrency_limit` beside
//! every attribute. In edition 2021, where the last two take as long to compile, only Clippy does that.

#![deny(warnings)]
#![allow(clippy::duplicate_mod, reason = "the cases are included once for each set of attributes")]

mod app;
#[cfg(any(runs_every_set, clippy))]
mod charging;
#[cfg(any(runs_every_set, clippy))]
mod held;
mod plain;
