//! A library of which a program uses one function, and calls none that is limited.
#![forbid(unsafe_code)]

pub mod unused;

/// Does nothing.
pub fn used() {}
