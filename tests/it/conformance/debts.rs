//! Calls that have used less or more than they were charged.

use std::time::Duration;

use super::{
    Case, FOREVER, S, Step, admits, case, case_of, never, peek, peek_refused, refund_of, refuses, settle,
    waits,
};
use crate::support::policies::{
    adjustable, borrowing, fixed_window, interval_refill, leaky_bucket, sliding_window, token_bucket,
};

const SECOND: Duration = Duration::from_secs(1);
const TEN: Duration = Duration::from_secs(10);
const DAY: i64 = 86_400 * S;

pub(super) fn cases() -> Vec<Case> {
    [buckets(), fixed_windows(), sliding_windows()].into_iter().flatten().collect()
}

/// Of a bucket of ten permits, one a second.
fn of_bucket() -> [Step; 12] {
    [
        admits(0, 4, 6, 4 * S),
        settle(S, 0, 2),
        peek(S, 9, S),
        admits(S, 3, 6, 4 * S),
        // All that is left, and five more.
        settle(2 * S, 1, 15),
        peek_refused(2 * S, 0, 6 * S, 15 * S),
        refuses(3 * S, 2, 0, 6 * S, 14 * S),
        never(3 * S, 11, 0, 14 * S),
        refuses(8 * S - 1, 1, 0, 1, 9 * S + 1),
        admits(8 * S, 1, 0, 10 * S),
        Step::Reset,
        peek(8 * S, 10, 0),
    ]
}

fn buckets() -> Vec<Case> {
    vec![
        case("a bucket pays a debt at its rate", token_bucket(1, SECOND, 10)).steps(of_bucket()),
        case("a meter pays a debt at its rate", leaky_bucket(10, 1, SECOND)).steps(of_bucket()),
        case("a bucket whose numbers can change pays a debt", adjustable::token_bucket(1, SECOND, 10))
            .steps(of_bucket()),
        case("a bucket that lends pays a debt beside what it has lent", borrowing(1, SECOND, Some(10)))
            .steps([
                admits(0, 12, 0, 12 * S),
                settle(0, 0, 20),
                refuses(0, 1, 0, 10 * S, 20 * S),
                admits(10 * S, 1, 0, 11 * S),
            ]),
        case("refills pay a debt", interval_refill(10, TEN, 10)).steps([
            admits(0, 2, 8, 10 * S),
            settle(0, 0, 25),
            // The third refill has a permit: 25 are missing, of 10 that the bucket holds.
            refuses(S, 1, 0, 19 * S, 29 * S),
            admits(20 * S, 5, 0, 10 * S),
        ]),
        case("a debt comes behind calls that wait", token_bucket(1, SECOND, 2)).steps([
            admits(0, 2, 0, 2 * S),
            waits(0, 1, FOREVER, S, 0, 3 * S),
            settle(0, 0, 5),
            peek_refused(0, 0, 5 * S, 6 * S),
            waits(0, 1, FOREVER, 5 * S, 0, 7 * S),
        ]),
        case("an earlier call is refunded beside a debt", token_bucket(1, SECOND, 10)).steps([
            admits(0, 3, 7, 3 * S),
            admits(0, 3, 4, 6 * S),
            settle(0, 1, 20),
            peek_refused(0, 0, 14 * S, 23 * S),
            refund_of(0, 0),
            peek_refused(0, 0, 11 * S, 20 * S),
        ]),
        // Seconds of refill: ten times as many as the bucket holds are less than a day.
        case("a debt of a bucket lasts for a day at most", token_bucket(1, SECOND, 10)).steps([
            admits(0, 1, 9, S),
            settle(0, 0, u64::MAX),
            refuses(0, 1, 0, DAY + S, DAY + 10 * S),
            settle(0, 0, u64::MAX),
            refuses(0, 1, 0, DAY + S, DAY + 10 * S),
            admits(DAY + S, 1, 0, 10 * S),
        ]),
        case(
            "a debt of a slow bucket lasts ten times as long as it fills",
            token_bucket(1, 3600 * SECOND, 24),
        )
        .steps([
            admits(0, 1, 23, 3600 * S),
            settle(0, 0, 1_000_000),
            refuses(0, 24, 0, 11 * DAY, 11 * DAY),
        ]),
    ]
}

fn fixed_windows() -> Vec<Case> {
    vec![
        case("a window begins with what the last one has exceeded", fixed_window(10, TEN, false)).steps([
            admits(0, 4, 6, 10 * S),
            settle(S, 0, 2),
            admits(S, 3, 5, 9 * S),
            settle(2 * S, 1, 18),
            // 20 are used: the next window pays ten, and is full.
            refuses(2 * S, 1, 0, 18 * S, 18 * S),
            refuses(10 * S, 1, 0, 10 * S, 10 * S),
            refuses(19_999_999, 1, 0, 1, 1),
            admits(20 * S, 1, 9, 10 * S),
        ]),
        case("a debt leaves the next window a part", fixed_window(10, TEN, true)).steps([
            admits(4 * S, 1, 9, 6 * S),
            settle(5 * S, 0, 14),
            refuses(6 * S, 6, 0, 4 * S, 14 * S),
            refuses(6 * S, 7, 0, 14 * S, 14 * S),
            admits(10 * S, 6, 0, 10 * S),
            refuses(11 * S, 1, 0, 9 * S, 9 * S),
            // Of another window.
            refund_of(11 * S, 0),
            refuses(11 * S, 1, 0, 9 * S, 9 * S),
            refund_of(11 * S, 1),
            admits(11 * S, 6, 0, 9 * S),
        ]),
        case("a call that ends after its window is charged to the present one", fixed_window(10, TEN, false))
            .steps([
                admits(0, 4, 6, 10 * S),
                settle(20 * S, 0, 7),
                peek(20 * S, 7, 10 * S),
                settle(21 * S, 0, 2),
                peek(21 * S, 7, 9 * S),
            ]),
        case_of(
            "a larger limit counts what a window owes",
            [fixed_window(10, TEN, false), fixed_window(20, TEN, false), fixed_window(5, TEN, false)],
        )
        .steps([
            admits(0, 1, 9, 10 * S),
            settle(0, 0, 14),
            Step::UsePolicy(2),
            // The next window begins with four.
            refuses(0, 1, 0, 10 * S, 20 * S),
            refuses(0, 2, 0, 20 * S, 20 * S),
            Step::UsePolicy(1),
            admits(0, 6, 0, 10 * S),
            Step::UsePolicy(0),
            // It has counted all of it as its own.
            admits(10 * S, 10, 0, 10 * S),
        ]),
        case_of(
            "a smaller limit shortens no debt",
            [fixed_window(1000, 60 * SECOND, false), fixed_window(1, 60 * SECOND, false)],
        )
        .steps([
            admits(0, 1, 999, 60 * S),
            settle(0, 0, 1_000_000),
            refuses(0, 1, 0, 60_000 * S, 60_000 * S),
            Step::UsePolicy(1),
            settle(0, 0, 2),
            // One permit more is beyond the longest debt of this limit.
            Step::UsePolicy(0),
            refuses(0, 1, 0, 60_000 * S, 60_000 * S),
        ]),
        case("a debt of windows lasts for a day at most", fixed_window(10, 3600 * SECOND, false)).steps([
            admits(0, 1, 9, 3600 * S),
            settle(0, 0, u64::MAX),
            refuses(0, 1, 0, DAY + 3600 * S, DAY + 3600 * S),
            admits(DAY + 3600 * S, 1, 9, 3600 * S),
        ]),
    ]
}

fn sliding_windows() -> Vec<Case> {
    vec![
        case("a log counts a debt for one period from when it is known", sliding_window(10, TEN, None))
            .steps([
                admits(0, 4, 6, 10 * S),
                settle(S, 0, 2),
                admits(S, 3, 5, 10 * S),
                settle(3 * S, 1, 20),
                // 22 are counted: two until 10 s, three until 11 s, and 17 until 13 s.
                refuses(4 * S, 1, 0, 9 * S, 9 * S),
                refuses(11 * S, 1, 0, 2 * S, 2 * S),
                admits(13 * S, 10, 0, 10 * S),
            ]),
        case("a counter counts a debt in the present sub-window", sliding_window(10, TEN, Some(SECOND)))
            .steps([
                admits(0, 4, 6, 11 * S),
                settle(500_000, 0, 3),
                peek(500_000, 7, 10_500_000),
                settle(3_200_000, 0, 14),
                refuses(4 * S, 1, 0, 10 * S, 10 * S),
                admits(14 * S, 10, 0, 11 * S),
            ]),
    ]
}
