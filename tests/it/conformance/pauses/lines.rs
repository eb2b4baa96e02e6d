//! Queues, refills and warm-ups that are paused.

use super::super::{
    Case, FOREVER, S, Step, admits, case, pause, peek, peek_refused, refund_of, refuses, times_out, waits,
};
use super::{SECOND, TEN};
use crate::support::policies::{adjustable, interval_refill, queue, warming_up};

pub(super) fn cases() -> Vec<Case> {
    [queues(), intervals(), warm_ups()].into_iter().flatten().collect()
}

fn queues() -> Vec<Case> {
    vec![
        // One call leaves at once, while two wait for a second each, and none for more than 2 s.
        case("a queue goes on after a pause", queue(2, 1, SECOND)).steps([
            pause(0, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            times_out(0, 1, FOREVER, 0, S, 3 * S),
            waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
            times_out(S, 1, S, 0, 2 * S, 3 * S),
            waits(2 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            pause(3 * S, 10 * S),
            // One starts at 13 s, and one at 14 s.
            refuses(3 * S, 1, 0, 12 * S, 12 * S),
            times_out(12 * S, 1, FOREVER, 0, S, 3 * S),
            waits(13 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            pause(20 * S, 60 * S),
            times_out(20 * S, 1, FOREVER, 0, 58 * S, 60 * S),
        ]),
        case("calls of a changing queue wait for the end of a pause", adjustable::queue(2, 1, SECOND)).steps(
            [
                pause(0, 2 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 4 * S),
                waits(0, 1, FOREVER, 4 * S, 0, 5 * S),
                times_out(0, 1, FOREVER, 0, 3 * S, 5 * S),
                times_out(S, 1, S, 0, 3 * S, 4 * S),
                times_out(2 * S, 1, FOREVER, 0, S, 3 * S),
                waits(3 * S, 1, FOREVER, 2 * S, 0, 3 * S),
                pause(20 * S, 60 * S),
                waits(20 * S, 1, FOREVER, 60 * S, 0, 61 * S),
                times_out(20 * S, 1, 50 * S, 0, 11 * S, 61 * S),
            ],
        ),
        case("the last call leaves a queue that is paused", queue(4, 1, SECOND)).steps([
            pause(0, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            waits(0, 1, FOREVER, 3 * S, 0, 4 * S),
            refund_of(S, 0),
            times_out(S, 1, 3 * S - 1, 0, 1, 3 * S),
            refund_of(S, 1),
            waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
        ]),
    ]
}

/// Of a bucket of five permits that gets two every ten seconds.
fn of_intervals() -> [Step; 17] {
    [
        admits(0, 4, 1, 20 * S),
        // The refills come at 40 s and 50 s.
        pause(4 * S, 30 * S),
        refuses(4 * S, 1, 0, 30 * S, 46 * S),
        refuses(4 * S, 2, 0, 36 * S, 46 * S),
        refuses(34 * S - 1, 1, 0, 1, 16 * S + 1),
        admits(34 * S, 1, 0, 26 * S),
        refuses(34 * S, 1, 0, 6 * S, 26 * S),
        peek(40 * S, 2, 20 * S),
        // The one at 50 s comes at 60 s.
        pause(45 * S, 10 * S),
        waits(45 * S, 1, FOREVER, 10 * S, 0, 35 * S),
        waits(45 * S, 1, FOREVER, 15 * S, 0, 35 * S),
        times_out(45 * S, 2, 25 * S - 1, 0, 25 * S, 35 * S),
        peek_refused(55 * S, 0, 5 * S, 25 * S),
        Step::Reset,
        pause(55 * S, 10 * S),
        refuses(55 * S, 1, 0, 10 * S, 30 * S),
        admits(65 * S, 1, 0, 30 * S),
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        case("a refill comes later by a pause", interval_refill(2, TEN, 5)).steps(of_intervals()),
        case("a changing refill comes later by a pause", adjustable::interval_refill(2, TEN, 5))
            .steps(of_intervals()),
    ]
}

/// Of a bucket with a permit a second once it is warm, of which the first takes 2.5 s when it is cold, and the second 1.5 s.
fn of_warm_up() -> [Step; 11] {
    [
        admits(0, 1, 0, 3_500_000),
        admits(2_500_000, 1, 0, 3_500_000),
        pause(3 * S, 10 * S),
        refuses(3 * S, 1, 0, 11 * S, 11 * S),
        admits(14 * S, 1, 0, 3_500_000),
        Step::Reset,
        pause(14 * S, 10 * S),
        refuses(14 * S, 1, 0, 10 * S, 10 * S),
        waits(14 * S, 1, FOREVER, 10 * S, 0, 13_500_000),
        waits(14 * S, 1, FOREVER, 12_500_000, 0, 16 * S),
        refuses(24 * S, 1, 0, 4 * S, 6 * S),
    ]
}

fn warm_ups() -> Vec<Case> {
    let four = 4 * SECOND;
    vec![
        case("a bucket that warms up is cold after a pause", warming_up(1, SECOND, four)).steps(of_warm_up()),
        case(
            "a bucket with changing numbers that warms up is cold after a pause",
            adjustable::warming_up(1, SECOND, four),
        )
        .steps(of_warm_up()),
    ]
}
