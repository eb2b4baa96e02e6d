//! Refunds of buckets in which other calls wait or were charged since.

use std::time::Duration;

use super::{
    Case, FOREVER, S, Step, admits, case, peek, peek_refused, refund, refund_of, refuses, times_out, waits,
};
use crate::support::policies::{interval_refill, queue, token_bucket};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [waiting(), stale(), queues()].into_iter().flatten().collect()
}

/// A bucket of ten permits, one a second, remembers a refund for as long as an earlier charge would be worth something.
pub(super) fn refund_beside_an_earlier_charge() -> [Step; 7] {
    [
        admits(0, 3, 7, 3 * S),
        admits(0, 3, 4, 6 * S),
        refund_of(0, 0),
        admits(0, 1, 6, 4 * S),
        admits(4_500_000, 5, 5, 5 * S),
        refund_of(4_500_000, 1),
        peek(4_500_000, 5, 5 * S),
    ]
}

fn waiting() -> Vec<Case> {
    vec![
        case("the last waiting call is refunded completely", token_bucket(1, SECOND, 2)).steps([
            admits(0, 2, 0, 2 * S),
            waits(0, 1, FOREVER, S, 0, 3 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 4 * S),
            refund_of(0, 2),
            peek_refused(0, 0, 2 * S, 3 * S),
            refund_of(500_000, 1),
            peek_refused(500_000, 0, 500_000, 1_500_000),
            // No call waits any more, so the first gets back what time has not refilled.
            refund_of(500_000, 0),
            peek(500_000, 2, 0),
        ]),
        case("a refund in the middle of a wait queue moves later calls forward", token_bucket(1, SECOND, 2))
            .steps([
                admits(0, 2, 0, 2 * S),
                waits(0, 1, FOREVER, S, 0, 3 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 4 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 5 * S),
                // Without these two the bucket would be full at 2 s and 3 s, not before the last slot at 3 s.
                refund_of(0, 0),
                refund_of(0, 1),
                peek_refused(0, 0, 4 * S, 5 * S),
                // Without this one it would be full at 4 s.
                refund_of(0, 2),
                peek_refused(0, 0, 3 * S, 4 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 5 * S),
                peek_refused(3 * S, 0, S, 2 * S),
            ]),
        case(
            "the last call that waits for a refill is refunded completely",
            interval_refill(5, 10 * SECOND, 5),
        )
        .steps([
            admits(0, 5, 0, 10 * S),
            waits(0, 1, FOREVER, 10 * S, 0, 20 * S),
            waits(0, 5, FOREVER, 20 * S, 0, 30 * S),
            refund_of(0, 2),
            peek_refused(0, 0, 10 * S, 20 * S),
            waits(0, 4, FOREVER, 10 * S, 0, 20 * S),
            // One in the middle: at 10 s one of 6 permits would be missing.
            refund_of(0, 1),
            peek_refused(0, 0, 10 * S, 20 * S),
            waits(0, 1, FOREVER, 10 * S, 0, 20 * S),
        ]),
        case("a refund without a receipt keeps the last slot", token_bucket(1, SECOND, 2)).steps([
            admits(0, 2, 0, 2 * S),
            waits(0, 1, FOREVER, S, 0, 3 * S),
            refund(0, u64::MAX),
            peek(0, 1, S),
        ]),
    ]
}

fn stale() -> Vec<Case> {
    // Five of ten permits are refunded, so that the bucket is full at 5 s and ten more are taken. Nothing of the other five is
    // left to refund.
    let steps = || -> Vec<Step> {
        let charges = (0..10).map(|i: i64| admits(0, 1, 9 - i128::from(i), (i + 1) * S));
        let first = (0..5).map(|nth| refund_of(0, nth));
        let later = (5..10).map(|nth| refund_of(5 * S, nth));
        let full = [peek(0, 5, 5 * S), admits(5 * S, 10, 0, 10 * S)];
        let after = [refuses(5 * S, 1, 0, S, 10 * S), refund_of(5 * S, 10), peek(5 * S, 10, 0)];
        charges.chain(first).chain(full).chain(later).chain(after).collect()
    };
    // After four times ten years the running total of refunds has wrapped around.
    let wrap_around = || -> Vec<Step> {
        const DAY: i64 = 86_400 * S;
        let round = |i: i64| {
            let left = i128::from(10 - i);
            let large = admits(0, 3640, left, (3640 + i) * DAY);
            let small = admits(0, 1, left - 1, (3641 + i) * DAY);
            [large, small, refund_of(0, 2 * i as usize), peek(0, 3649 - i128::from(i), (1 + i) * DAY)]
        };
        // The last small charge was made before the last large refund, and is worth its full price.
        (0..4).flat_map(round).chain([refund_of(0, 7), peek(0, 3647, 3 * DAY)]).collect()
    };
    // The receipt says that more is missing than is, so the charge was made to another state.
    let after_a_reset = || {
        vec![
            admits(0, 10, 0, 10 * S),
            Step::Reset,
            admits(0, 1, 9, S),
            refund_of(0, 0),
            peek(0, 9, S),
            refund_of(0, 1),
            peek(0, 10, 0),
        ]
    };
    vec![
        case("refunds of other calls are not refunded again", token_bucket(1, SECOND, 10)).steps(steps()),
        case(
            "refunds of other calls are not refunded again by an interval bucket",
            interval_refill(1, SECOND, 10),
        )
        .steps(steps()),
        case("a refund counts until all earlier charges are worth nothing", token_bucket(1, SECOND, 10))
            .steps(refund_beside_an_earlier_charge()),
        case(
            "a charge after a refund can be refunded until an interval bucket is full",
            interval_refill(1, SECOND, 10),
        )
        .steps([
            admits(0, 3, 7, 3 * S),
            admits(0, 3, 4, 6 * S),
            refund_of(0, 0),
            admits(0, 4, 3, 7 * S),
            refund_of(6_500_000, 2),
            peek(6_500_000, 10, 0),
        ]),
        case("the running total of refunds wraps around", token_bucket(1, 86_400 * SECOND, 3650))
            .steps(wrap_around()),
        case("a receipt from before a reset is worth nothing", token_bucket(1, SECOND, 10))
            .steps(after_a_reset()),
        case(
            "an interval bucket's receipt from before a reset is worth nothing",
            interval_refill(1, SECOND, 10),
        )
        .steps(after_a_reset()),
    ]
}

fn queues() -> Vec<Case> {
    vec![case("a queue refunds only its last slots", queue(2, 1, SECOND)).steps([
        admits(0, 1, 2, S),
        waits(0, 1, FOREVER, S, 1, 2 * S),
        waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
        refund_of(0, 0),
        refund_of(0, 1),
        times_out(0, 1, FOREVER, 0, S, 3 * S),
        refund_of(500_000, 2),
        waits(500_000, 1, FOREVER, 1_500_000, 0, 2_500_000),
        refund_of(500_000, 3),
        // Now this call is the last, and half of its slot is still to come.
        refund_of(1_500_000, 1),
        admits(1_500_000, 1, 2, S),
    ])]
}
