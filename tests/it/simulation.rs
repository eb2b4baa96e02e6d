//! Schedules of processes, a store and the messages between them, whose steps a seed decides: messages are late, lost or doubled,
//! processes stall and die, and the store loses its data. A failure prints its seed; `RATELIMITS_SEED` repeats the run.

mod holds;
mod process;
mod schedule;
mod store;
mod turns;
