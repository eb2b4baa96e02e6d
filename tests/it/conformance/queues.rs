//! Calls that wait for a slot: in buckets, and in a leaky bucket as a queue.

use std::time::Duration;

use super::{Case, FOREVER, S, admits, case, never, peek, peek_refused, refuses, times_out, waits, within};
use crate::support::policies::{interval_refill, leaky_bucket, queue, token_bucket};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [buckets(), interval_buckets(), queues()].into_iter().flatten().collect()
}

fn buckets() -> Vec<Case> {
    vec![
        case("calls wait for permits in arrival order", token_bucket(1, SECOND, 2)).steps([
            admits(0, 2, 0, 2 * S),
            waits(0, 1, S, S, 0, 3 * S),
            times_out(0, 1, 1_999_999, 0, 2 * S, 3 * S),
            waits(0, 1, 2 * S, 2 * S, 0, 4 * S),
            // A call that does not wait is not admitted before those that do.
            refuses(0, 1, 0, 3 * S, 4 * S),
            within(FOREVER, 0, never(0, 3, 0, 4 * S)),
            peek_refused(2 * S, 0, S, 2 * S),
            refuses(2_999_999, 1, 0, 1, 1_000_001),
            admits(3 * S, 1, 0, 2 * S),
        ]),
        case("a slot is when all permits of the call are there", token_bucket(1, SECOND, 5)).steps([
            admits(0, 4, 1, 4 * S),
            waits(0, 3, FOREVER, 2 * S, 0, 7 * S),
            // One permit is there, but reserved by the call before.
            refuses(0, 1, 0, 3 * S, 7 * S),
            waits(500_000, 5, FOREVER, 6_500_000, 0, 11_500_000),
        ]),
        case("a call that need not wait does not", token_bucket(1, SECOND, 2))
            .steps([waits(0, 1, FOREVER, 0, 1, S), waits(S, 2, FOREVER, 0, 0, 2 * S)]),
        case("calls wait for a leaky bucket", leaky_bucket(4, 1, SECOND)).steps([
            admits(0, 4, 0, 4 * S),
            waits(500_000, 2, 2 * S, 1_500_000, 0, 5_500_000),
            times_out(S, 1, S, 0, 2 * S, 5 * S),
            peek(3 * S, 1, 3 * S),
        ]),
        case("the longest wait stays exact", token_bucket(1, 3650 * 86_400 * SECOND, 1)).steps([
            admits(7, 1, 0, FOREVER),
            waits(7, 1, FOREVER, FOREVER, 0, 2 * FOREVER),
            times_out(8, 1, FOREVER, 0, 2 * FOREVER - 1, 2 * FOREVER - 1),
            waits(FOREVER + 7, 1, FOREVER, FOREVER, 0, 2 * FOREVER),
        ]),
        case("a step back moves the wait queue", token_bucket(1, SECOND, 2)).steps([
            admits(10 * S, 2, 0, 2 * S),
            waits(10 * S, 1, FOREVER, S, 0, 3 * S),
            // The queue was 3 s long, and still is.
            refuses(5 * S, 1, 0, 2 * S, 3 * S),
            peek_refused(6 * S, 0, S, 2 * S),
            waits(6 * S, 1, S, S, 0, 3 * S),
        ]),
    ]
}

fn interval_buckets() -> Vec<Case> {
    vec![
        case("calls wait for a refill", interval_refill(2, 10 * SECOND, 5)).steps([
            admits(0, 5, 0, 30 * S),
            waits(S, 1, 9 * S, 9 * S, 0, 29 * S),
            waits(S, 2, FOREVER, 19 * S, 0, 39 * S),
            times_out(S, 1, 18_999_999, 0, 19 * S, 39 * S),
            within(FOREVER, 0, never(S, 6, 0, 39 * S)),
            peek(20 * S, 1, 20 * S),
            waits(20 * S, 2, 10 * S, 10 * S, 0, 30 * S),
        ]),
        case("a step back moves calls that wait for a refill", interval_refill(2, 10 * SECOND, 5)).steps([
            admits(50 * S, 5, 0, 30 * S),
            waits(50 * S, 1, FOREVER, 10 * S, 0, 30 * S),
            refuses(40 * S, 1, 0, 10 * S, 30 * S),
            peek(50 * S, 1, 20 * S),
        ]),
    ]
}

/// A wait queue of 2^52 permits, the most that are counted.
pub(super) fn longest_wait_queue() -> Case {
    const MOST: u64 = 1_000_000_000_000;
    const LEFT: u64 = (1 << 52) - 4503 * MOST;
    let queue = (1..4503).map(|n| waits(0, MOST, FOREVER, n * S, 0, (n + 1) * S));
    let full = [
        times_out(0, MOST, FOREVER, 0, 4503 * S, 4503 * S),
        waits(0, LEFT, FOREVER, 4503 * S, 0, 4504 * S),
        times_out(0, 1, FOREVER, 0, 4503 * S, 4504 * S),
        peek_refused(4502 * S, 0, S, 2 * S),
        peek(4503 * S, i128::from(MOST - LEFT), S),
        waits(4503 * S, MOST, S, S, 0, 2 * S),
    ];
    let steps = [admits(0, MOST, 0, S)].into_iter().chain(queue).chain(full);
    case("a wait queue of 2^52 permits", interval_refill(MOST, SECOND, MOST)).steps(steps)
}

fn queues() -> Vec<Case> {
    vec![
        case("a queue admits one call at once, and as many waiting as it has capacity", queue(2, 1, SECOND))
            .steps([
                admits(0, 1, 2, S),
                refuses(0, 1, 2, S, S),
                times_out(0, 1, 999_999, 2, 1, S),
                waits(0, 1, FOREVER, S, 1, 2 * S),
                waits(0, 1, 2 * S, 2 * S, 0, 3 * S),
                times_out(0, 1, FOREVER, 0, S, 3 * S),
                times_out(999_999, 1, FOREVER, 0, 1, 2_000_001),
                waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
                peek_refused(2 * S, 1, 2 * S, 2 * S),
                // An idle queue stores nothing.
                admits(3600 * S, 1, 2, S),
                refuses(3600 * S, 1, 2, S, S),
            ]),
        case("a call of cost n takes n slots and starts at the first", queue(2, 1, SECOND)).steps([
            admits(10 * S, 2, 1, 2 * S),
            times_out(10 * S, 2, FOREVER, 1, S, 2 * S),
            waits(10 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            within(FOREVER, 0, never(10 * S, 4, 0, 3 * S)),
            times_out(11 * S, 2, FOREVER, 1, S, 2 * S),
            waits(12 * S, 2, FOREVER, S, 0, 3 * S),
            admits(20 * S, 3, 0, 3 * S),
            times_out(20_500_000, 1, FOREVER, 0, 500_000, 2_500_000),
        ]),
        case("a queue is at most full after a step back", queue(2, 1, SECOND)).steps([
            admits(10 * S, 1, 2, S),
            waits(10 * S, 1, FOREVER, S, 1, 2 * S),
            peek_refused(9 * S, 0, 3 * S, 3 * S),
            times_out(5 * S, 1, FOREVER, 0, S, 3 * S),
            waits(6 * S, 1, FOREVER, 2 * S, 0, 3 * S),
        ]),
    ]
}
