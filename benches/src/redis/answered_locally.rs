//! What calls cost when Redis is not asked about each of them, beside the same calls when it is.

use std::cell::Cell;
use std::rc::Rc;

use ratelimits::{Error, Registry, TokenBucket, count_limit, rate_limit};

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
    Ok(vec![
        line("zipf", by_zipf).at_least(10.0),
        line("one hot key", hot).at_least(100.0),
        leases("windows of an hour", bench, leased_windows, windows).at_least(14.0),
        leases("buckets of 100 a second", bench, leased_buckets, buckets),
    ])
}

/// Calls of a function with leases, beside the same function without.
fn leases<
    L: Future<Output = Result<(), Error>> + 'static,
    A: Future<Output = Result<(), Error>> + 'static,
>(
    policy: &str,
    bench: &Bench,
    leased: fn(Registry, usize) -> L,
    asking: fn(Registry, usize) -> A,
) -> Line {
    Line::new(
        format!("leases of 100, zipf: {policy}"),
        "k/s",
        bench.of(admitted(bench, leased), Usage::throughput),
    )
    .against("always asking Redis", bench.of(admitted(bench, asking), Usage::throughput))
}

/// Calls of a function, all of which are admitted, by a zipf distribution of its keys.
fn admitted<F: Future<Output = Result<(), Error>> + 'static>(
    bench: &Bench,
    function: fn(Registry, usize) -> F,
) -> Operation {
    let registry = bench.registry.clone();
    by_zipf(operation(move |key| {
        let call = function(registry.clone(), key);
        async move { call.await.expect("the policy admits the call") }
    }))
}

#[count_limit(1_000_000_000, "1h", key = user, registry = &registry)]
async fn windows(registry: Registry, user: usize) -> Result<(), Error> {
    Ok(())
}

#[count_limit(1_000_000_000, "1h", key = user, lease = 100, registry = &registry)]
async fn leased_windows(registry: Registry, user: usize) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(100.0, 1_000_000_000, key = user, registry = &registry)]
async fn buckets(registry: Registry, user: usize) -> Result<(), Error> {
    Ok(())
}

#[rate_limit(100.0, 1_000_000_000, key = user, lease = 100, registry = &registry)]
async fn leased_buckets(registry: Registry, user: usize) -> Result<(), Error> {
    Ok(())
}

/// Calls of a limiter that admits ten permits a second for each key, with a burst of one, so that a measurement does not begin
/// with calls that are admitted.
fn limited(registry: &Registry, name: &str) -> Operation {
    let policy = TokenBucket::per_second(10).burst(1);
    let limiter = registry.limiter(&format!("limited, {name}"), policy).expect("the policy is valid");
    operation(move |key| {
        let limiter = limiter.clone();
        async move {
            let result = limiter.try_acquire(key).await;
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
