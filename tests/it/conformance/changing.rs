//! Buckets whose numbers change from call to call.

use std::time::Duration;

use super::Step::UsePolicy;
use super::receipts::refund_beside_an_earlier_charge;
use super::{Case, FOREVER, S, admits, case_of, peek, peek_refused, refund, refund_of, refuses, waits};
use crate::support::policies::adjustable::{
    borrowing, interval_refill, leaky_bucket, queue, token_bucket, warming_up,
};

const SECOND: Duration = Duration::from_secs(1);
const DAY: Duration = Duration::from_secs(86_400);

pub(super) fn cases() -> Vec<Case> {
    [bursts(), rates(), mixed(), waiting(), refunds(), intervals(), warm_ups()]
        .into_iter()
        .flatten()
        .collect()
}

fn bursts() -> Vec<Case> {
    vec![
        case_of(
            "missing permits stay missing when the burst changes",
            [token_bucket(1, SECOND, 10), token_bucket(1, SECOND, 19), token_bucket(1, SECOND, 3)],
        )
        .steps([
            admits(0, 10, 0, 10 * S),
            refuses(0, 1, 0, S, 10 * S),
            UsePolicy(1),
            admits(0, 9, 0, 19 * S),
            refuses(0, 1, 0, S, 19 * S),
            UsePolicy(2),
            // Nineteen are missing, and with one more than three would be until 17 s have passed.
            refuses(0, 1, 0, 17 * S, 19 * S),
            refuses(16_999_999, 1, 0, 1, 2_000_001),
            admits(17 * S, 1, 0, 3 * S),
        ]),
        case_of(
            "water stays in a leaky bucket when its capacity changes",
            [leaky_bucket(2, 1, SECOND), leaky_bucket(5, 1, SECOND)],
        )
        .steps([
            admits(0, 2, 0, 2 * S),
            UsePolicy(1),
            admits(0, 3, 0, 5 * S),
            UsePolicy(0),
            peek_refused(S, 0, 3 * S, 4 * S),
        ]),
    ]
}

fn rates() -> Vec<Case> {
    vec![
        case_of(
            "a faster call finds the same permits missing",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 8)],
        )
        .steps([
            admits(0, 4, 0, 4 * S),
            UsePolicy(1),
            // Three are missing at 1 s. Only reading does not change the rate.
            peek(S, 5, 3 * S),
            admits(S, 1, 4, 400_000),
            peek(1_100_000, 5, 300_000),
            peek(1_400_000, 8, 0),
        ]),
        case_of(
            "a slower call finds the same permits missing",
            [token_bucket(10, SECOND, 10), token_bucket(1, SECOND, 5)],
        )
        .steps([
            admits(0, 10, 0, S),
            UsePolicy(1),
            // The bucket refills at the rate of the last admitted call: four are missing after 600 ms.
            refuses(0, 1, 0, 600_000, S),
            refuses(599_999, 1, 0, 1, 400_001),
            admits(600_000, 1, 0, 5 * S),
            refuses(700_000, 1, 0, 900_000, 4_900_000),
        ]),
        case_of(
            "missing permits are rounded up to a microsecond",
            [token_bucket(3, SECOND, 4), token_bucket(2, SECOND, 4)],
        )
        .steps([
            // A permit takes 333,334 µs, of which 1 µs has passed: 0.999997 permits are missing.
            admits(0, 1, 3, 333_334),
            UsePolicy(1),
            admits(1, 1, 2, 999_999),
            peek(2, 2, 999_998),
        ]),
        case_of(
            "missing permits are rounded up by a microsecond more where doubles are not exact",
            [token_bucket(1, 10 * DAY, 4), token_bucket(1, 20 * DAY, 4)],
        )
        .steps([
            admits(0, 1, 3, 10 * 86_400 * S),
            UsePolicy(1),
            admits(0, 1, 1, 40 * 86_400 * S + 1),
        ]),
        case_of(
            "debt stays debt when the rate changes",
            [borrowing(1, SECOND, 1), borrowing(10, SECOND, 10)],
        )
        .steps([
            admits(0, 20, 0, 20 * S),
            refuses(0, 1, 0, 19 * S, 20 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 10 * S, 20 * S),
            admits(10 * S, 5, 0, 1_500_000),
        ]),
        case_of(
            "a slow call may find more permits missing than it could wait for",
            [token_bucket(1_000_000, SECOND, 1000), token_bucket(1, 3650 * DAY, 1)],
        )
        .steps([
            admits(0, 1000, 0, 1000),
            UsePolicy(1),
            refuses(0, 1, 0, 1000, 1000),
            admits(1000, 1, 0, FOREVER),
            UsePolicy(0),
            admits(1000, 1, 998, 2),
        ]),
        case_of(
            "debt is rounded up by a microsecond more where a permit takes no whole ones",
            [borrowing(7, SECOND, 7), borrowing(3, SECOND, 3)],
        )
        .steps([
            admits(0, 21, 0, 3 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 2_571_430, 3 * S),
            refuses(2_571_429, 1, 0, 1, 428_571),
            admits(2_571_430, 1, 0, 1_333_332),
            UsePolicy(0),
            // Nothing is missing.
            admits(3_904_762, 7, 0, S),
        ]),
    ]
}

fn mixed() -> Vec<Case> {
    vec![
        case_of(
            "calls with different numbers share the permits",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 8), token_bucket(5, SECOND, 10)],
        )
        .steps([
            admits(0, 1, 3, S),
            UsePolicy(1),
            admits(0, 1, 6, 200_000),
            UsePolicy(2),
            admits(0, 1, 7, 600_000),
            UsePolicy(0),
            admits(0, 1, 0, 4 * S),
            UsePolicy(1),
            admits(0, 1, 3, 500_000),
            UsePolicy(2),
            admits(0, 1, 4, 1_200_000),
            UsePolicy(0),
            refuses(0, 1, 0, 600_000, 1_200_000),
        ]),
        case_of(
            "a state from the future counts as of now at any rate",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 8)],
        )
        .steps([
            UsePolicy(1),
            admits(100 * S, 8, 0, 800_000),
            UsePolicy(0),
            refuses(0, 4, 0, 800_000, 800_000),
            UsePolicy(1),
            refuses(0, 1, 0, 100_000, 800_000),
        ]),
    ]
}

fn waiting() -> Vec<Case> {
    vec![
        case_of(
            "a faster rate starts after the last reserved slot",
            [token_bucket(1, SECOND, 1), token_bucket(10, SECOND, 1)],
        )
        .steps([
            admits(0, 1, 0, S),
            waits(0, 1, FOREVER, S, 0, 2 * S),
            UsePolicy(1),
            // The reserved permit is taken at 1 s. A tenth of a second later the next one is there.
            refuses(0, 1, 0, 2 * S, 2 * S),
            waits(0, 1, FOREVER, 1_100_000, 0, 1_200_000),
        ]),
        case_of("a slower rate starts at once", [token_bucket(10, SECOND, 1), token_bucket(1, SECOND, 1)])
            .steps([
                admits(0, 1, 0, 100_000),
                waits(0, 1, FOREVER, 100_000, 0, 200_000),
                UsePolicy(1),
                refuses(0, 1, 0, 200_000, 200_000),
                waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            ]),
        case_of(
            "slots of a queue keep their distance when the rate changes",
            [queue(5, 1, SECOND), queue(5, 10, SECOND)],
        )
        .steps([
            admits(0, 1, 5, S),
            waits(0, 1, FOREVER, S, 4, 2 * S),
            UsePolicy(1),
            waits(1_200_000, 1, FOREVER, 80_000, 4, 180_000),
        ]),
    ]
}

fn refunds() -> Vec<Case> {
    vec![
        case_of(
            "a receipt from before the rate changed refunds nothing",
            [token_bucket(1, SECOND, 4), token_bucket(2, SECOND, 4)],
        )
        .steps([
            admits(0, 1, 3, S),
            UsePolicy(1),
            admits(0, 1, 2, S),
            UsePolicy(0),
            refund_of(0, 0),
            peek(0, 2, S),
            UsePolicy(1),
            refund_of(0, 1),
            peek(0, 3, 500_000),
        ]),
        case_of(
            "a receipt from before two changes of the rate at one time refunds nothing",
            [token_bucket(1, SECOND, 4), token_bucket(2, SECOND, 4)],
        )
        .steps([
            admits(0, 1, 3, S),
            UsePolicy(1),
            admits(0, 1, 2, S),
            UsePolicy(0),
            admits(0, 1, 1, 3 * S),
            refund_of(0, 0),
            peek(0, 1, 3 * S),
            refund_of(0, 2),
            peek(0, 2, 2 * S),
        ]),
        case_of(
            "a receipt from before the burst changed refunds its permits",
            [token_bucket(1, SECOND, 4), token_bucket(1, SECOND, 9)],
        )
        .steps([
            admits(0, 2, 2, 2 * S),
            UsePolicy(1),
            admits(0, 2, 5, 4 * S),
            UsePolicy(0),
            refund_of(S, 0),
            peek(S, 2, 2 * S),
        ]),
        case_of(
            "a refund is remembered while an earlier charge would be worth something",
            [token_bucket(1, SECOND, 10)],
        )
        .steps(refund_beside_an_earlier_charge()),
        case_of(
            "the slot of a smaller burst stays reserved when a later charge is refunded",
            [token_bucket(1, SECOND, 10), token_bucket(1, SECOND, 1)],
        )
        .steps([
            admits(0, 3, 7, 3 * S),
            UsePolicy(1),
            waits(0, 1, FOREVER, 3 * S, 0, 4 * S),
            UsePolicy(0),
            admits(0, 1, 5, 5 * S),
            refund_of(0, 2),
            peek(0, 6, 4 * S),
            // By the slot of the call that waits, these have refilled.
            refund_of(0, 0),
            peek(0, 6, 4 * S),
            admits(3 * S, 9, 0, 10 * S),
        ]),
        case_of(
            "a refund without a receipt counts permits",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 4)],
        )
        .steps([admits(0, 4, 0, 4 * S), UsePolicy(1), refund(0, 2), peek(0, 2, 2 * S)]),
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        case_of(
            "a charge with another refill is refunded whatever was refunded before",
            [interval_refill(1, SECOND, 10), interval_refill(2, SECOND, 10)],
        )
        .steps([
            admits(0, 3, 7, 3 * S),
            admits(0, 3, 4, 6 * S),
            refund_of(0, 0),
            UsePolicy(1),
            admits(0, 2, 5, 3 * S),
            refund_of(S, 2),
            peek(S, 9, S),
        ]),
        case_of(
            "a receipt from before two changes of the refill refunds nothing",
            [interval_refill(1, SECOND, 4), interval_refill(2, SECOND, 4)],
        )
        .steps([
            admits(0, 1, 3, S),
            UsePolicy(1),
            admits(1, 1, 2, S - 1),
            UsePolicy(0),
            admits(2, 1, 1, 3 * S - 2),
            refund_of(2, 0),
            peek(2, 1, 3 * S - 2),
            refund_of(2, 2),
            peek(2, 2, 2 * S - 2),
        ]),
        case_of(
            "refills are those of the last charge",
            [interval_refill(2, SECOND, 4), interval_refill(5, SECOND, 10)],
        )
        .steps([
            admits(0, 4, 0, 2 * S),
            UsePolicy(1),
            admits(0, 4, 2, 2 * S),
            // Eight are missing, of which five come back after each second.
            peek(S, 7, S),
            UsePolicy(0),
            peek(S, 1, S),
            admits(S, 1, 0, 2 * S),
            refuses(S, 1, 0, S, 2 * S),
        ]),
        case_of(
            "larger refills start after the last reserved slot",
            [interval_refill(1, SECOND, 1), interval_refill(10, SECOND, 1)],
        )
        .steps([
            admits(0, 1, 0, S),
            waits(0, 1, FOREVER, S, 0, 2 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 2 * S, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 2 * S),
        ]),
        case_of(
            "smaller refills count from the next charge on",
            [interval_refill(2, SECOND, 3), interval_refill(1, SECOND, 6)],
        )
        .steps([
            admits(0, 3, 0, 2 * S),
            waits(0, 3, FOREVER, 2 * S, 0, 3 * S),
            UsePolicy(1),
            // With refills of two, as before, four of the six are missing at 1 s.
            refuses(0, 2, 0, S, 3 * S),
            admits(S, 2, 0, 6 * S),
        ]),
    ]
}

fn warm_ups() -> Vec<Case> {
    vec![
        case_of(
            "debt of a bucket that warms up is paid at the rate of its call",
            [warming_up(1, SECOND, SECOND), warming_up(10, SECOND, SECOND)],
        )
        .steps([admits(0, 3, 0, 4_500_000), UsePolicy(1), refuses(0, 1, 0, 3_500_000, 4_500_000)]),
    ]
}
