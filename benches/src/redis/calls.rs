//! Calls to Redis one after the other, of which `benches/instructions` counts the instructions of the client.

use std::cell::LazyCell;

use super::bench::{Bench, Bucket};
use super::load::Operation;
use crate::workload::Key;

type Call = Box<dyn Fn(&Key)>;

pub(crate) fn paths() -> Vec<(&'static str, Call)> {
    vec![
        path("in Redis, limiter, u64 key", |bench| bench.by_limiter(&Bucket::BUSY)),
        path("in Redis, our script without the library", |bench| bench.by_our_script(&Bucket::BUSY)),
        path("in Redis, INCR", Bench::incr),
    ]
}

/// The server starts with the first call.
fn path(name: &'static str, operation: fn(&Bench) -> Operation) -> (&'static str, Call) {
    let ready = LazyCell::new(move || {
        let bench = Bench::new().unwrap_or_else(|error| panic!("{error}"));
        let operation = operation(&bench);
        (bench, operation)
    });
    let call = move |key: &Key| {
        let (bench, operation) = &*ready;
        bench.load.block_on(operation(key.id as usize));
    };
    (name, Box::new(call))
}
