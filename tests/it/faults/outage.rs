//! One fault after another. Each decision ends in time as an error or correctly, charges at most once and reveals no secret.
//! Decisions are correct again soon after the fault.

mod access;
mod errors;
mod failover;
mod fixture;
mod loss;
mod network;
mod starvation;
mod unresponsive;
