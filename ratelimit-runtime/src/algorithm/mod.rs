//! The algorithms: pure steps from a state, a spec, a time and a cost to a new state and a verdict, without clock, lock,
//! I/O or async. Not covered by semver.
//!
//! Every algorithm exists twice, here and in the Lua file of the same name, in the same order: `check` reads the state and
//! `commit` charges what was checked. A script replies with the few numbers that its check has read; `verdict` turns them
//! into a decision here, for both twins.

pub mod adjustable_gcra;
pub mod believed_holds;
pub mod calendar_window;
mod credits;
mod debt;
pub mod fixed_window;
pub mod gcra;
pub mod holds;
pub mod interval_bucket;
mod lows;
mod mirror;
mod pause;
mod paused;
mod penalty;
mod per_instance;
mod plain;
pub mod settled_gcra;
mod shape;
pub mod sliding_window;
#[cfg(test)]
mod small_models;
mod spec;
mod state;
mod verdict;
pub mod warming_up;

pub use pause::Pause;
pub use penalty::Penalty;
pub(crate) use plain::{
    CommonSpec, KindOfPlain, PlainRefund, PlainSnapshot, PlainSpec, PlainState, PlainStep, PlainSteps,
    dated_pace,
};
pub use spec::AlgorithmSpec;
pub use state::State;
pub(crate) use verdict::known;
pub use verdict::{ChargeId, Snapshot, UNKNOWN, UNKNOWN_BUT_NEXT, Verdict};
