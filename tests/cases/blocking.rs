//! All cases again with functions that are not async, as the build script writes them.

#![deny(warnings)]
#![allow(
    clippy::duplicate_mod,
    clippy::needless_borrows_for_generic_args,
    clippy::needless_pass_by_value,
    clippy::redundant_closure,
    clippy::trivially_copy_pass_by_ref,
    clippy::type_complexity,
    clippy::unnecessary_wraps,
    clippy::unused_self,
    clippy::unused_unit,
    reason = "the cases are included once for each set of attributes, and these do not look at async functions"
)]

include!(concat!(env!("OUT_DIR"), "/cases.rs"));

#[path = "blocking/holds.rs"]
mod holds;
