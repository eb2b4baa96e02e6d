//! What the observer of a dashboard counts.

pub(crate) mod counts;
mod recently_limited;
mod traffic;
