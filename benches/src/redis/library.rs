//! What the library costs, with all calls admitted.

use std::rc::Rc;

use ratelimits::{Error, Registry, rate_limit};

use super::bench::{Bench, Bucket};
use super::load::{Operation, Usage, operation};
use crate::table::Line;

pub(super) fn lines(bench: &Bench) -> Vec<Line> {
    let (busy, idle) = (bench.by_limiter(&Bucket::BUSY), bench.by_limiter(&Bucket::IDLE));
    let textbook = bench.by_textbook(Bucket::BUSY.name, &Bucket::BUSY);
    let idle_textbook = bench.by_textbook(Bucket::IDLE.name, &Bucket::IDLE);
    let throughput = |operation: &Operation| bench.of(Rc::clone(operation), Usage::throughput);
    let client = |operation: &Operation| bench.of(Rc::clone(operation), Usage::client_microseconds);
    vec![
        Line::new("concurrent decisions, busy", "k/s", throughput(&busy))
            .against("textbook GCRA script each", throughput(&textbook))
            .at_least(5.0),
        Line::new("concurrent decisions, idle", "k/s", throughput(&idle))
            .against("textbook GCRA script each", throughput(&idle_textbook))
            .at_least(2.5),
        Line::new("concurrent decisions, busy", "k/s", throughput(&busy))
            .against("INCR each", throughput(&bench.incr()))
            .at_least(0.7),
        Line::new("concurrent decisions, busy: client CPU", "µs", client(&busy))
            .against("textbook GCRA script each", client(&textbook))
            .at_most(0.6),
        one_task(bench, busy),
        three_buckets(bench),
    ]
}

fn one_task(bench: &Bench, limiter: Operation) -> Line {
    let latency = |operation: Operation| {
        let load = Rc::clone(&bench.load);
        move || load.latency(&operation)
    };
    Line::new("one task, nothing in flight: p50", "µs", latency(limiter))
        .against("our script without the library", latency(bench.by_our_script(&Bucket::BUSY)))
        .at_most(1.05)
}

fn three_buckets(bench: &Bench) -> Line {
    let annotated = |cost| {
        let registry = bench.registry.clone();
        operation(move |key| {
            let registry = registry.clone();
            async move { limited_by_three(&registry, key, cost).await.expect("the buckets hold enough") }
        })
    };
    bench.load.for_each_key(&annotated(Bucket::BUSY.debt));
    let textbook = ["first", "second", "third"].map(|name| bench.by_textbook(name, &Bucket::BUSY));
    let textbook = operation(move |key| {
        let calls = textbook.each_ref().map(|call| call(key));
        async move {
            for call in calls {
                call.await;
            }
        }
    });
    Line::new("three token buckets on a call", "k/s", bench.of(annotated(1), Usage::throughput))
        .against("textbook GCRA script three times", bench.of(textbook, Usage::throughput))
        .at_least(2.0)
}

#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
#[rate_limit(1000.0, 1_000_000_000, key = user, cost = cost, registry = registry)]
async fn limited_by_three(registry: &Registry, user: usize, cost: u64) -> Result<(), Error> {
    Ok(())
}
