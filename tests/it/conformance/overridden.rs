//! Buckets with literal numbers, and calls with other numbers on the same keys.

use std::time::Duration;

use super::Step::{Reset, UsePolicy};
use super::{Case, FOREVER, S, admits, case_of, peek, peek_refused, refund, refund_of, refuses, waits};
use crate::support::policies::Pair;
use crate::support::policies::literal::{
    borrowing, interval_refill, leaky_bucket, overridden, queue, token_bucket, warming_up,
};

const SECOND: Duration = Duration::from_secs(1);

/// The first policy has the numbers as written.
fn case<const N: usize>(name: &'static str, buckets: [Option<Pair>; N]) -> Case {
    case_of(name, overridden(buckets))
}

pub(super) fn cases() -> Vec<Case> {
    [numbers(), layouts(), waiting(), refunds(), late_refunds(), intervals(), warm_ups()]
        .into_iter()
        .flatten()
        .collect()
}

fn numbers() -> Vec<Case> {
    vec![
        case(
            "a larger burst keeps the missing permits",
            [token_bucket(1, SECOND, 10), token_bucket(1, SECOND, 19)],
        )
        .steps([
            admits(0, 10, 0, 10 * S),
            UsePolicy(1),
            admits(0, 9, 0, 19 * S),
            refuses(0, 1, 0, S, 19 * S),
            UsePolicy(0),
            // Nineteen are missing, and with one more than ten would be until 10 s have passed.
            refuses(0, 1, 0, 10 * S, 19 * S),
            refuses(9_999_999, 1, 0, 1, 9_000_001),
            admits(10 * S, 1, 0, 10 * S),
        ]),
        case(
            "a faster rate keeps the missing permits",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 8)],
        )
        .steps([
            admits(0, 4, 0, 4 * S),
            UsePolicy(1),
            // Three are missing at 1 s. Only reading does not change the rate.
            peek(S, 5, 3 * S),
            admits(S, 1, 4, 400_000),
            UsePolicy(0),
            // The bucket refills at the rate of the last admitted call.
            peek(1_100_000, 1, 300_000),
            admits(1_100_000, 1, 0, 4 * S),
            refuses(1_100_000, 1, 0, S, 4 * S),
            UsePolicy(1),
            refuses(1_100_000, 5, 4, S, 4 * S),
            admits(1_100_000, 4, 0, 800_000),
        ]),
        case(
            "a slower rate keeps the missing permits",
            [token_bucket(10, SECOND, 10), token_bucket(1, SECOND, 5)],
        )
        .steps([
            admits(0, 10, 0, S),
            UsePolicy(1),
            refuses(0, 1, 0, 600_000, S),
            admits(600_000, 1, 0, 5 * S),
            UsePolicy(0),
            // Five of the ten are missing, and refill at the slow rate until the next call is charged.
            refuses(600_000, 6, 5, S, 5 * S),
            admits(600_000, 5, 0, S),
            refuses(600_000, 1, 0, 100_000, S),
        ]),
        case(
            "missing permits of a literal bucket are rounded up",
            [token_bucket(3, SECOND, 4), token_bucket(2, SECOND, 4)],
        )
        .steps([
            admits(0, 1, 3, 333_334),
            UsePolicy(1),
            admits(1, 1, 2, 999_999),
            UsePolicy(0),
            admits(1, 1, 1, 1_000_002),
        ]),
        case("a meter keeps its water", [leaky_bucket(2, 1, SECOND), leaky_bucket(5, 1, SECOND)]).steps([
            admits(0, 2, 0, 2 * S),
            UsePolicy(1),
            admits(0, 3, 0, 5 * S),
            UsePolicy(0),
            peek_refused(S, 0, 3 * S, 4 * S),
            admits(4 * S, 1, 0, 2 * S),
        ]),
        case("debt keeps its permits", [borrowing(1, SECOND, 1), borrowing(10, SECOND, 10)]).steps([
            admits(0, 20, 0, 20 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 10 * S, 20 * S),
            admits(10 * S, 5, 0, 1_500_000),
            UsePolicy(0),
            // Fifteen are missing, of which one may be.
            refuses(10 * S, 1, 0, 1_400_000, 1_500_000),
            admits(11_400_000, 1, 0, 2 * S),
        ]),
    ]
}

fn layouts() -> Vec<Case> {
    vec![
        case(
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
        case(
            "a bucket that was full starts afresh",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 8)],
        )
        .steps([
            admits(0, 2, 2, 2 * S),
            UsePolicy(1),
            admits(0, 2, 4, 400_000),
            UsePolicy(0),
            admits(500_000, 4, 0, 4 * S),
            refuses(500_000, 1, 0, S, 4 * S),
            admits(2_500_000, 1, 1, 3 * S),
            UsePolicy(1),
            admits(10 * S, 8, 0, 800_000),
            Reset,
            UsePolicy(0),
            admits(10 * S, 4, 0, 4 * S),
        ]),
        case(
            "a state from the future counts as of now",
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
        case(
            "slots stay reserved when the rate rises",
            [token_bucket(1, SECOND, 1), token_bucket(10, SECOND, 1)],
        )
        .steps([
            admits(0, 1, 0, S),
            waits(0, 1, FOREVER, S, 0, 2 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 2 * S, 2 * S),
            waits(0, 1, FOREVER, 1_100_000, 0, 1_200_000),
            UsePolicy(0),
            // Twelve are missing at the last rate, and a slower one starts at once.
            waits(0, 1, FOREVER, 12 * S, 0, 13 * S),
        ]),
        case("slots of a literal queue keep their distance", [queue(5, 1, SECOND), queue(5, 10, SECOND)])
            .steps([
                admits(0, 1, 5, S),
                waits(0, 1, FOREVER, S, 4, 2 * S),
                UsePolicy(1),
                waits(1_200_000, 1, FOREVER, 80_000, 4, 180_000),
                UsePolicy(0),
                waits(1_200_000, 1, FOREVER, 1_800_000, 3, 2_800_000),
                refund_of(1_200_000, 3),
                peek_refused(1_200_000, 4, 1_800_000, 1_800_000),
            ]),
        case(
            "a call that waits since before an override leaves its slot",
            [queue(5, 1, SECOND), queue(5, 2, SECOND)],
        )
        .steps([
            admits(0, 1, 5, S),
            waits(0, 1, FOREVER, S, 4, 2 * S),
            UsePolicy(1),
            waits(0, 1, FOREVER, 1_500_000, 2, 2 * S),
            UsePolicy(0),
            refund_of(0, 1),
            peek_refused(0, 2, 2 * S, 2 * S),
            UsePolicy(1),
            refund_of(0, 2),
            peek_refused(0, 3, 1_500_000, 1_500_000),
        ]),
        case("debt waits at the rate of the call", [borrowing(1, SECOND, 1), borrowing(10, SECOND, 1)])
            .steps([
                admits(0, 5, 0, 5 * S),
                UsePolicy(1),
                waits(0, 1, FOREVER, 400_000, 0, 600_000),
                UsePolicy(0),
                waits(0, 1, FOREVER, 5 * S, 0, 7 * S),
            ]),
    ]
}

fn refunds() -> Vec<Case> {
    vec![
        case(
            "the slot of a smaller burst stays reserved",
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
        case(
            "a receipt from before an override refunds nothing",
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
        case(
            "a receipt of an override refunds nothing after it",
            [token_bucket(1, SECOND, 4), token_bucket(2, SECOND, 4)],
        )
        .steps([
            UsePolicy(1),
            admits(0, 1, 3, 500_000),
            UsePolicy(0),
            admits(0, 1, 2, 2 * S),
            UsePolicy(1),
            refund_of(0, 0),
            peek(0, 2, 2 * S),
            UsePolicy(0),
            refund_of(0, 1),
            peek(0, 3, S),
        ]),
        case(
            "a receipt survives an override of the burst",
            [token_bucket(1, SECOND, 4), token_bucket(1, SECOND, 9)],
        )
        .steps([
            admits(0, 2, 2, 2 * S),
            UsePolicy(1),
            admits(0, 2, 5, 4 * S),
            UsePolicy(0),
            admits(S, 1, 0, 4 * S),
            refund_of(S, 0),
            peek(S, 1, 3 * S),
            UsePolicy(1),
            refund_of(S, 1),
            peek(S, 8, S),
        ]),
        case(
            "a refund of an overridden bucket without a receipt counts permits",
            [token_bucket(1, SECOND, 4), token_bucket(10, SECOND, 4)],
        )
        .steps([
            admits(0, 4, 0, 4 * S),
            UsePolicy(1),
            refund(0, 2),
            peek(0, 2, 2 * S),
            admits(0, 1, 1, 300_000),
            UsePolicy(0),
            refund(0, 1),
            peek(0, 2, 200_000),
        ]),
    ]
}

/// Refunds by receipts for plain states, which do not say when their charges were made.
fn late_refunds() -> Vec<Case> {
    let [literal, faster] = [token_bucket(1, SECOND, 10), token_bucket(2, SECOND, 10)];
    vec![
        case("a receipt from before an override refunds nothing after it", [literal, faster]).steps([
            admits(0, 10, 0, 10 * S),
            UsePolicy(1),
            admits(S, 1, 0, 5 * S),
            UsePolicy(0),
            // Full since 6 s. Of the first call four permits would be missing without the others.
            admits(6 * S, 10, 0, 10 * S),
            refund_of(6 * S, 0),
            peek_refused(6 * S, 0, S, 10 * S),
            // A receipt from after the change counts, also once there is nothing left to remember.
            admits(10 * S, 1, 3, 7 * S),
            refund_of(10 * S, 3),
            peek(10 * S, 4, 6 * S),
            refund_of(10 * S, 2),
            peek(10 * S, 10, 0),
        ]),
        case(
            "a receipt from before two overrides refunds nothing",
            [literal, faster, token_bucket(5, SECOND, 10)],
        )
        .steps([
            admits(0, 10, 0, 10 * S),
            UsePolicy(1),
            admits(S, 1, 0, 5 * S),
            UsePolicy(2),
            admits(1_500_000, 1, 0, 2 * S),
            UsePolicy(0),
            admits(7 * S, 10, 0, 10 * S),
            refund_of(7 * S, 0),
            peek_refused(7 * S, 0, S, 10 * S),
        ]),
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        case(
            "refills change with the numbers",
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
        case(
            "refills that are reserved stay so",
            [interval_refill(1, SECOND, 1), interval_refill(10, SECOND, 1)],
        )
        .steps([
            admits(0, 1, 0, S),
            waits(0, 1, FOREVER, S, 0, 2 * S),
            UsePolicy(1),
            refuses(0, 1, 0, 2 * S, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 2 * S),
        ]),
        case(
            "a receipt for other refills refunds nothing",
            [interval_refill(2, SECOND, 10), interval_refill(5, SECOND, 10)],
        )
        .steps([
            admits(0, 6, 4, 3 * S),
            UsePolicy(1),
            admits(500_000, 4, 0, 1_500_000),
            UsePolicy(0),
            refund_of(500_000, 0),
            peek_refused(500_000, 0, 500_000, 1_500_000),
            // Full since 2 s.
            admits(2_500_000, 10, 0, 5 * S),
            refund_of(2_500_000, 0),
            peek_refused(2_500_000, 0, S, 5 * S),
            refund_of(2_500_000, 2),
            peek(2_500_000, 10, 0),
        ]),
        case(
            "a receipt survives another burst of refills",
            [interval_refill(2, SECOND, 4), interval_refill(2, SECOND, 9)],
        )
        .steps([
            admits(0, 2, 2, S),
            UsePolicy(1),
            admits(300_000, 2, 5, 1_700_000),
            UsePolicy(0),
            refund_of(400_000, 0),
            peek(400_000, 2, 600_000),
            admits(400_000, 1, 1, 1_600_000),
            refund_of(400_000, 2),
            peek(400_000, 2, 600_000),
        ]),
    ]
}

fn warm_ups() -> Vec<Case> {
    let buckets = [warming_up(1, SECOND, SECOND), warming_up(10, SECOND, SECOND)];
    vec![case("debt of a literal bucket that warms up stays", buckets).steps([
        admits(0, 3, 0, 4_500_000),
        UsePolicy(1),
        refuses(0, 1, 0, 3_500_000, 4_500_000),
        UsePolicy(0),
        refuses(0, 1, 0, 3_500_000, 4_500_000),
        refund_of(0, 0),
        peek(0, 1, 0),
    ])]
}
