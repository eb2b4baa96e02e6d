//! Calls of several threads at once, by the clock on the wall.

use std::hint::black_box;
use std::rc::Rc;

use crate::limiters::{admitting, governor_refusing, refusing};
use crate::table::Line;
use crate::workload::{Workload, now};

pub(super) fn limited_hot_key() -> Vec<Line> {
    let limiter = refusing("limited");
    let governor = Rc::new(governor_refusing::<u64>());
    let line = |(threads, budget): (usize, f64)| {
        let (limiter, governor) = (limiter.clone(), Rc::clone(&governor));
        let nanoseconds = move |throughput: f64| threads as f64 * 1e9 / throughput;
        Line::new(format!("limited hot key, {threads} threads"), "ns", move || {
            nanoseconds(
                Workload::Hot
                    .throughput(threads, &|key| _ = black_box(now(limiter.try_acquire(key.id)).is_ok())),
            )
        })
        .against("governor by u64", move || {
            let governor = &*governor;
            nanoseconds(
                Workload::Hot.throughput(threads, &|key| _ = black_box(governor.check_key(&key.id).is_ok())),
            )
        })
        .at_most(budget)
    };
    [(2, 0.3), (4, 0.15)].into_iter().map(line).collect()
}

pub(super) fn many_keys() -> Vec<Line> {
    let limiter = admitting("many");
    let throughput = move |threads| {
        Workload::Uniform.throughput(threads, &|key| _ = black_box(now(limiter.try_acquire(key.id)).is_ok()))
            / 1e6
    };
    let line = |(threads, budget): (usize, f64)| {
        let (several, one) = (throughput.clone(), throughput.clone());
        Line::new(format!("{threads} threads on many keys"), "M/s", move || several(threads))
            .against("1 thread", move || one(1))
            .at_least(budget)
    };
    [(2, 1.0), (4, 3.0)].into_iter().map(line).collect()
}
