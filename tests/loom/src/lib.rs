//! What threads see of each other's decisions in the memory store, under the model checker [loom]: it runs every interleaving of
//! a few threads, and returns from each load every value that the memory model allows. The models have few threads that do
//! little, so that there are few interleavings.
//!
//! So are readers of a table of overridden keys, while its keys and what is known of them are replaced.
//!
//! The store is the product's, built with loom's atomics and mutex (`ratelimit-runtime/src/base/sync_loom.rs`). Everything that it
//! depends on is built again for that, so the models need a flag of the compiler, and there are none without it:
//!
//! ```sh
//! RUSTFLAGS="--cfg ratelimits_loom" cargo test --profile loom -p loom-models
//! ```
//!
//! [loom]: https://docs.rs/loom
#![cfg(all(test, ratelimits_loom))]

mod charges;
mod holds;
mod in_place;
mod refunds;
mod slots;
mod support;
mod tables;
