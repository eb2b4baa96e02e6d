//! Buckets whose calls are settled: what comes back of their charges.

use std::time::Duration;

use super::Step::UsePolicy;
use super::{Case, FOREVER, S, admits, case, case_of, peek, peek_refused, refund, refund_of, refuses, waits};
use crate::support::policies::Pair;
use crate::support::policies::adjustable::settled;

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [remembered(), forgotten(), waiting()].into_iter().flatten().collect()
}

/// A bucket that gets a permit a second.
fn bucket(burst: u64) -> Option<Pair> {
    settled(1, SECOND, burst, false)
}

fn remembered() -> Vec<Case> {
    vec![
        case("a charge comes back as far as its permits have been missing ever since", bucket(10)).steps([
            admits(0, 4, 6, 4 * S),
            admits(0, 6, 0, 10 * S),
            admits(5 * S, 5, 0, 10 * S),
            // Without other charges the first would be paid by now. Yet four permits or more have always been missing.
            refund_of(6 * S, 0),
            peek(6 * S, 5, 5 * S),
            // Without the first, one was missing at 5 s.
            refund_of(6 * S, 1),
            peek(6 * S, 6, 4 * S),
            // This was the last one.
            refund_of(6 * S, 2),
            peek(6 * S, 10, 0),
        ]),
        case("what comes back of a charge leaves those before it as they were", bucket(10)).steps([
            admits(0, 4, 6, 4 * S),
            admits(0, 3, 3, 7 * S),
            admits(0, 3, 0, 10 * S),
            refund_of(S, 1),
            refund_of(S, 2),
            peek(S, 7, 3 * S),
            refund_of(S, 0),
            peek(S, 10, 0),
        ]),
        case("a bucket that lends remembers what it lacks", settled(1, SECOND, 2, true)).steps([
            admits(0, 10, 0, 10 * S),
            admits(8 * S, 5, 0, 7 * S),
            refuses(9 * S, 1, 0, 4 * S, 6 * S),
            // Two were missing at 8 s.
            refund_of(9 * S, 0),
            peek_refused(9 * S, 0, 2 * S, 4 * S),
            refund_of(9 * S, 1),
            peek(9 * S, 2, 0),
        ]),
        case_of("charges at other bursts come back", [bucket(4), bucket(9)]).steps([
            admits(0, 2, 2, 2 * S),
            UsePolicy(1),
            admits(S, 2, 6, 3 * S),
            UsePolicy(0),
            refund_of(2 * S, 0),
            peek(2 * S, 3, S),
        ]),
    ]
}

fn forgotten() -> Vec<Case> {
    vec![
        case("nothing comes back of a charge once the bucket was full", bucket(10)).steps([
            admits(0, 2, 8, 2 * S),
            admits(2 * S, 5, 5, 5 * S),
            refund_of(2 * S, 0),
            peek(2 * S, 5, 5 * S),
        ]),
        case_of(
            "nothing comes back of a charge from before the rate changed",
            [bucket(4), settled(2, SECOND, 4, false)],
        )
        .steps([
            admits(0, 1, 3, S),
            UsePolicy(1),
            admits(0, 1, 2, S),
            UsePolicy(0),
            admits(0, 1, 1, 3 * S),
            refund_of(0, 0),
            refund_of(0, 1),
            peek(0, 1, 3 * S),
            refund_of(0, 2),
            peek(0, 2, 2 * S),
        ]),
        case("the least low is forgotten first", bucket(10)).steps([
            admits(0, 1, 9, S),
            admits(0, 3, 6, 4 * S),
            admits(0, 2, 4, 6 * S),
            admits(0, 2, 2, 8 * S),
            admits(0, 2, 0, 10 * S),
            // One was missing after it, which is less than another of the others would lose.
            refund_of(0, 0),
            peek_refused(0, 0, S, 10 * S),
            refund_of(0, 1),
            peek(0, 3, 7 * S),
        ]),
        case("a refund without a receipt lowers what was missing", bucket(10)).steps([
            admits(0, 4, 6, 4 * S),
            admits(0, 4, 2, 8 * S),
            refund(0, 3),
            peek(0, 5, 5 * S),
            refund_of(0, 0),
            peek(0, 6, 4 * S),
        ]),
    ]
}

fn waiting() -> Vec<Case> {
    vec![
        case("a slot that was given stays one", bucket(2)).steps([
            admits(0, 2, 0, 2 * S),
            waits(0, 1, FOREVER, S, 0, 3 * S),
            // At the slot, one is missing.
            refund_of(500_000, 0),
            peek_refused(500_000, 0, 500_000, 1_500_000),
            refund_of(500_000, 1),
            peek(500_000, 1, 500_000),
        ]),
        case("a call in the middle of a line leaves it whole", bucket(3)).steps([
            admits(0, 3, 0, 3 * S),
            waits(0, 2, FOREVER, 2 * S, 0, 5 * S),
            waits(0, 1, FOREVER, 3 * S, 0, 6 * S),
            refund_of(0, 1),
            peek_refused(0, 0, 2 * S, 4 * S),
        ]),
    ]
}
