//! What it costs to settle what calls have used, beside calls that have used what was estimated.

use std::cell::Cell;
use std::rc::Rc;

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};

use super::bench::Bench;
use super::load::{Operation, operation};
use crate::table::Line;

/// Few calls for each key, so that hardly two settlements are of one.
const TASKS: usize = 64;
const KEYS: usize = 1024;

const ESTIMATE: u64 = 10;

pub(super) fn lines(bench: &Bench) -> Vec<Line> {
    let mut lines =
        of(bench, "bucket", async |registry, key, used| bucket(&registry, key, used).await.map(drop));
    lines.extend(of(bench, "refill", async |registry, key, used| {
        refill(&registry, key, used).await.map(drop)
    }));
    lines.extend(of(bench, "window", async |registry, key, used| {
        window(&registry, key, used).await.map(drop)
    }));
    lines.extend(of(bench, "month", async |registry, key, used| month(&registry, key, used).await.map(drop)));
    lines.extend(of(bench, "counter", async |registry, key, used| {
        counter(&registry, key, used).await.map(drop)
    }));
    lines.extend(of(bench, "log", async |registry, key, used| log(&registry, key, used).await.map(drop)));
    lines
}

fn of<F: Future<Output = Result<(), Error>> + 'static>(
    bench: &Bench,
    name: &str,
    call: impl Fn(Registry, usize, u64) -> F + Copy + 'static,
) -> Vec<Line> {
    let settled = calls(bench, call, |number| number * 7 % (2 * ESTIMATE - 1) + 1);
    let exact = calls(bench, call, |_| ESTIMATE);
    let server = |tasks: usize, operation: &Operation| {
        let (load, operation) = (Rc::clone(&bench.load), Rc::clone(operation));
        move || load.measure_all(tasks, &operation).server_microseconds()
    };
    let latency = |operation: &Operation| {
        let (load, operation) = (Rc::clone(&bench.load), Rc::clone(operation));
        move || load.latency(&operation)
    };
    let line = |tasks: usize| {
        Line::new(format!("settled, {name}, {tasks} tasks: server CPU"), "µs", server(tasks, &settled))
            .against("estimates are exact", server(tasks, &exact))
            .at_most(1.5)
    };
    let latency = Line::new(format!("settled, {name}, one task: p50"), "µs", latency(&settled))
        .against("estimates are exact", latency(&exact))
        .at_most(1.03);
    vec![line(1), line(TASKS), latency]
}

fn calls<F: Future<Output = Result<(), Error>> + 'static>(
    bench: &Bench,
    call: impl Fn(Registry, usize, u64) -> F + Copy + 'static,
    used: impl Fn(u64) -> u64 + 'static,
) -> Operation {
    let (registry, number) = (bench.registry.clone(), Cell::new(0));
    operation(move |key| {
        number.set(number.get() + 1);
        let (registry, used) = (registry.clone(), used(number.get()));
        async move { call(registry, key % KEYS, used).await.expect("the policy admits the call") }
    })
}

macro_rules! settled {
    ($name:ident, $attribute:ident($($arguments:tt)*)) => {
        #[$attribute($($arguments)*, key = user, cost = ESTIMATE, registry = registry, settle = count)]
        async fn $name(registry: &Registry, user: usize, used: u64) -> Result<u64, Error> {
            Ok(used)
        }
    };
}

settled!(bucket, rate_limit(1000.0, 1_000_000_000));
settled!(refill, rate_limit(rate = "1000000/s", burst = 1_000_000_000, refill = interval));
settled!(window, count_limit(1_000_000_000, 60));
settled!(month, count_limit(1_000_000_000, period = "month"));
settled!(counter, window_limit(1_000_000_000, 60, precision = "1s"));
settled!(log, window_limit(10_000, 1));

fn count(out: &Result<u64, Error>) -> u64 {
    out.as_ref().map_or(0, |used| *used)
}
