//! What calls cost when Redis is not asked about each of them, beside the same calls when it is.

use std::cell::Cell;
use std::rc::Rc;

use ratelimits::{Registry, TokenBucket};

use super::bench::Bench;
use super::load::{KEYS, Operation, Usage, operation};
use crate::table::Line;
use crate::workload::zipf;

pub(super) fn lines(bench: &Bench) -> Result<Vec<Line>, String> {
    let asking = bench.always_asking()?;
    let line = |keys: &str, choose: fn(Operation) -> Operation| {
        let throughput = |registry| bench.of(choose(limited(registry, keys)), Usage::throughput);
        Line::new(format!("limited keys, answered locally: {keys}"), "k/s", throughput(&bench.registry))
            .against("always asking Redis", throughput(&asking))
    };
    Ok(vec![line("zipf", by_zipf).at_least(10.0), line("one hot key", hot).at_least(100.0)])
}

/// Calls of a limiter that admits ten permits a second for each key, with a burst of one, so that a measurement does not begin
/// with calls that are admitted.
fn limited(registry: &Registry, name: &str) -> Operation {
    let policy = TokenBucket::per_second(10).burst(1);
    let limiter = registry.limiter(&format!("limited, {name}"), policy).expect("the policy is valid");
    operation(move |key| {
        let limiter = limiter.clone();
        async move {
            let result = limiter.try_acquire(key, 1).await;
            assert!(result.is_ok() || result.is_err_and(|error| error.is_limited()));
        }
    })
}

/// The same operation, for the n-th key 1/n as often as for the first.
fn by_zipf(operation: Operation) -> Operation {
    let (keys, next) = (zipf(KEYS), Cell::new(0));
    Rc::new(move |_| {
        let call = next.get();
        next.set(call + 1);
        operation(keys[call % keys.len()] as usize)
    })
}

fn hot(operation: Operation) -> Operation {
    Rc::new(move |_| operation(0))
}
