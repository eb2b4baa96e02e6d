//! Calls that wait for their slot: in buckets, and in a queue.

use std::time::Duration;

use super::{Case, FOREVER, S, gives_up, never, no, peek, waiting, waits, yes};
use crate::support::policies::{interval_refill, leaky_bucket, queue, token_bucket};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [buckets(), portions(), queues()].into_iter().flatten().collect()
}

fn buckets() -> Vec<Case> {
    vec![
        Case {
            name: "calls wait in line for what is yet to come",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(0, 2, 0, 2 * S),
                waits(0, 1, S, S, 0, 3 * S),
                gives_up(0, 1, 1_999_999, 0, 2 * S, 3 * S),
                waits(0, 1, 2 * S, 2 * S, 0, 4 * S),
                // Who does not wait is not served before those who do.
                no(0, 1, 0, 3 * S, 4 * S),
                waiting(FOREVER, 0, never(0, 3, 0, 4 * S)),
                peek(2 * S, 0, 2 * S),
                no(2_999_999, 1, 0, 1, 1_000_001),
                yes(3 * S, 1, 0, 2 * S),
            ],
        },
        Case {
            name: "a call that waits has its slot when all of its permits are there",
            policies: vec![token_bucket(1, SECOND, 5)],
            steps: vec![
                yes(0, 4, 1, 4 * S),
                waits(0, 3, FOREVER, 2 * S, 0, 7 * S),
                // One permit is there, and belongs to the call before.
                no(0, 1, 0, 3 * S, 7 * S),
                waits(500_000, 5, FOREVER, 6_500_000, 0, 11_500_000),
            ],
        },
        Case {
            name: "who would wait and need not does not",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![waits(0, 1, FOREVER, 0, 1, S), waits(S, 2, FOREVER, 0, 0, 2 * S)],
        },
        Case {
            name: "calls wait for a meter to leak",
            policies: vec![leaky_bucket(4, 1, SECOND)],
            steps: vec![
                yes(0, 4, 0, 4 * S),
                waits(500_000, 2, 2 * S, 1_500_000, 0, 5_500_000),
                gives_up(S, 1, S, 0, 2 * S, 5 * S),
                peek(3 * S, 1, 3 * S),
            ],
        },
        Case {
            name: "the longest wait for the slowest bucket stays exact",
            policies: vec![token_bucket(1, 3650 * 86_400 * SECOND, 1)],
            steps: vec![
                yes(7, 1, 0, FOREVER),
                waits(7, 1, FOREVER, FOREVER, 0, 2 * FOREVER),
                gives_up(8, 1, FOREVER, 0, 2 * FOREVER - 1, 2 * FOREVER - 1),
                waits(FOREVER + 7, 1, FOREVER, FOREVER, 0, 2 * FOREVER),
            ],
        },
        Case {
            name: "a clock that steps back takes the line with it",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(10 * S, 2, 0, 2 * S),
                waits(10 * S, 1, FOREVER, S, 0, 3 * S),
                // It reached 3 s far, and so it does from here.
                no(5 * S, 1, 0, 2 * S, 3 * S),
                peek(6 * S, 0, 2 * S),
                waits(6 * S, 1, S, S, 0, 3 * S),
            ],
        },
    ]
}

fn portions() -> Vec<Case> {
    vec![
        Case {
            name: "calls wait for a refill",
            policies: vec![interval_refill(2, 10 * SECOND, 5)],
            steps: vec![
                yes(0, 5, 0, 30 * S),
                waits(S, 1, 9 * S, 9 * S, 0, 29 * S),
                waits(S, 2, FOREVER, 19 * S, 0, 39 * S),
                gives_up(S, 1, 18_999_999, 0, 19 * S, 39 * S),
                waiting(FOREVER, 0, never(S, 6, 0, 39 * S)),
                peek(20 * S, 1, 20 * S),
                waits(20 * S, 2, 10 * S, 10 * S, 0, 30 * S),
            ],
        },
        Case {
            name: "a clock that steps back takes those who wait for a refill with it",
            policies: vec![interval_refill(2, 10 * SECOND, 5)],
            steps: vec![
                yes(50 * S, 5, 0, 30 * S),
                waits(50 * S, 1, FOREVER, 10 * S, 0, 30 * S),
                no(40 * S, 1, 0, 10 * S, 30 * S),
                peek(50 * S, 1, 20 * S),
            ],
        },
    ]
}

/// A line of 2^52 permits, which is as many as can be counted.
pub(super) fn a_long_line() -> Case {
    const MOST: u64 = 1_000_000_000_000;
    const LEFT: u64 = (1 << 52) - 4503 * MOST;
    let line = (1..4503).map(|n| waits(0, MOST, FOREVER, n * S, 0, (n + 1) * S));
    let full = [
        gives_up(0, MOST, FOREVER, 0, 4503 * S, 4503 * S),
        waits(0, LEFT, FOREVER, 4503 * S, 0, 4504 * S),
        gives_up(0, 1, FOREVER, 0, 4503 * S, 4504 * S),
        peek(4502 * S, 0, 2 * S),
        peek(4503 * S, i128::from(MOST - LEFT), S),
        waits(4503 * S, MOST, S, S, 0, 2 * S),
    ];
    Case {
        name: "a line of as many permits as can be counted",
        policies: vec![interval_refill(MOST, SECOND, MOST)],
        steps: [yes(0, MOST, 0, S)].into_iter().chain(line).chain(full).collect(),
    }
}

fn queues() -> Vec<Case> {
    vec![
        Case {
            name: "one leaves at once, two wait, and the next has no place",
            policies: vec![queue(2, 1, SECOND)],
            steps: vec![
                yes(0, 1, 2, S),
                no(0, 1, 2, S, S),
                gives_up(0, 1, 999_999, 2, 1, S),
                waits(0, 1, FOREVER, S, 1, 2 * S),
                waits(0, 1, 2 * S, 2 * S, 0, 3 * S),
                gives_up(0, 1, FOREVER, 0, S, 3 * S),
                gives_up(999_999, 1, FOREVER, 0, 1, 2_000_001),
                waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
                peek(2 * S, 1, 2 * S),
                // An idle queue stores nothing.
                yes(3600 * S, 1, 2, S),
                no(3600 * S, 1, 2, S, S),
            ],
        },
        Case {
            name: "a call of cost n takes n places, and leaves at the first",
            policies: vec![queue(2, 1, SECOND)],
            steps: vec![
                yes(10 * S, 2, 1, 2 * S),
                gives_up(10 * S, 2, FOREVER, 1, S, 2 * S),
                waits(10 * S, 1, FOREVER, 2 * S, 0, 3 * S),
                waiting(FOREVER, 0, never(10 * S, 4, 0, 3 * S)),
                gives_up(11 * S, 2, FOREVER, 1, S, 2 * S),
                waits(12 * S, 2, FOREVER, S, 0, 3 * S),
                yes(20 * S, 3, 0, 3 * S),
                gives_up(20_500_000, 1, FOREVER, 0, 500_000, 2_500_000),
            ],
        },
        Case {
            name: "a clock that steps back finds a queue at most full",
            policies: vec![queue(2, 1, SECOND)],
            steps: vec![
                yes(10 * S, 1, 2, S),
                waits(10 * S, 1, FOREVER, S, 1, 2 * S),
                peek(9 * S, 0, 3 * S),
                gives_up(5 * S, 1, FOREVER, 0, S, 3 * S),
                waits(6 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            ],
        },
    ]
}
