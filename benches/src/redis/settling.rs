//! What it costs to settle what calls have used, beside calls that have used what was estimated.

use std::cell::Cell;
use std::rc::Rc;

use ratelimits::{Error, Registry, count_limit, rate_limit, window_limit};

use super::bench::Bench;
use super::load::{Operation, operation};
use crate::table::Line;

/// Some calls of each key within the time for which settlements are gathered.
const TASKS: usize = 64;
const KEYS: usize = 1024;

const ESTIMATE: u64 = 10;

pub(super) fn lines(bench: &Bench) -> Vec<Line> {
    let lines = [
        of(bench, "bucket", bucket),
        of(bench, "refill", refill),
        of(bench, "window", window),
        of(bench, "month", month),
        of(bench, "counter", counter),
        of(bench, "log", log),
    ];
    lines.into_iter().flatten().collect()
}

fn of<F: Future<Output = Result<u64, Error>> + 'static>(
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
    let line = |of: &str, tasks: usize| {
        Line::new(format!("settled, {name}, {of}: server CPU"), "µs", server(tasks, &settled))
            .against("estimates are exact", server(tasks, &exact))
            .at_most(1.5)
    };
    let latency = Line::new(format!("settled, {name}, one task: p50"), "µs", latency(&settled))
        .against("estimates are exact", latency(&exact))
        .at_most(1.03);
    vec![line("one task", 1), line("64 tasks", TASKS), latency]
}

fn calls<F: Future<Output = Result<u64, Error>> + 'static>(
    bench: &Bench,
    call: impl Fn(Registry, usize, u64) -> F + Copy + 'static,
    used: impl Fn(u64) -> u64 + 'static,
) -> Operation {
    let (registry, number) = (bench.registry.clone(), Cell::new(0));
    operation(move |key| {
        number.set(number.get() + 1);
        let (registry, used) = (registry.clone(), used(number.get()));
        async move {
            call(registry, key % KEYS, used).await.expect("the policy admits the call");
        }
    })
}

macro_rules! settled {
    ($name:ident, $attribute:ident($($arguments:tt)*)) => {
        #[$attribute($($arguments)*, key = user, cost = ESTIMATE, registry = &registry, settle = count)]
        async fn $name(registry: Registry, user: usize, used: u64) -> Result<u64, Error> {
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
