//! What a decision in process costs: the first table of the design's budgets, in its order.

mod calls;
mod own_process;
mod threads;

pub(crate) use own_process::measure;

use crate::limiters;
use crate::table::{self, Line, Options};

pub(crate) fn run(options: &Options) {
    let lines = [
        calls::limiters(),
        threads::limited_hot_key(),
        calls::annotated(),
        #[cfg(feature = "overrides")]
        calls::overridden(),
        own_process::memory_per_key(),
        threads::many_keys(),
        own_process::longest_calls(),
        vec![size_of_future()],
    ];
    table::run("In process", lines.into_iter().flatten().collect(), 15, options);
}

fn size_of_future() -> Line {
    let limiter = limiters::admitting("size");
    let size = move || size_of_val(&limiter.try_acquire("key")).max(size_of_val(&limiter.try_acquire(1_u64)));
    Line::new("future of Limiter::try_acquire", "B", move || size() as f64).at_most(256.0)
}
