//! Buckets with `borrow`, and buckets with `warmup`.

use std::time::Duration;

use super::{
    Case, FOREVER, S, admits, case, never, peek, peek_refused, refund, refund_of, refuses, times_out, waits,
    within,
};
use crate::support::policies::{borrowing, borrowing_for, warming_up};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [borrowing_cases(), warmups()].into_iter().flatten().collect()
}

fn borrowing_cases() -> Vec<Case> {
    vec![
        case("a call of any cost goes ahead and the next one pays its debt", borrowing(10, SECOND, None))
            .steps([
                admits(0, 25, 0, 2_500_000),
                refuses(0, 1, 0, 1_500_000, 2_500_000),
                times_out(0, 1, 1_499_999, 0, 1_500_000, 2_500_000),
                // It waits for the debt before it, not for its own cost.
                waits(0, 100, 1_500_000, 1_500_000, 0, 12_500_000),
                refuses(11_499_999, 1, 0, 1, 1_000_001),
                admits(11_500_000, 1, 0, 1_100_000),
                peek(12_500_000, 9, 100_000),
                peek(12_600_000, 10, 0),
            ]),
        case("the price of a call is rounded up once", borrowing(3, SECOND, Some(3))).steps([
            admits(0, 3, 0, S),
            admits(0, 1, 0, 1_333_334),
            refuses(0, 1, 0, 333_334, 1_333_334),
            admits(333_334, 2, 0, 1_666_667),
        ]),
        case(
            "a burst given as a time is exact with borrow",
            borrowing_for(10, SECOND, Duration::from_millis(250)),
        )
        .steps([
            admits(0, 2, 0, 200_000),
            admits(0, 1, 0, 300_000),
            refuses(0, 1, 0, 50_000, 300_000),
            peek(200_000, 1, 100_000),
        ]),
        case("the debt of one call is at most ten years", borrowing(1, 86_400 * SECOND, Some(1))).steps([
            within(FOREVER, 0, never(0, 3651, 1, 0)),
            within(FOREVER, 0, never(0, u64::MAX, 1, 0)),
            admits(0, 3650, 0, FOREVER),
            refuses(0, 1, 0, 3649 * 86_400 * S, FOREVER),
        ]),
        case("the longest debt stays exact", borrowing(1, 86_400 * SECOND, Some(3650))).steps([
            admits(7, 3650, 0, FOREVER),
            admits(7, 3650, 0, 2 * FOREVER),
            waits(7, 3650, FOREVER, FOREVER, 0, 3 * FOREVER),
            times_out(8, 1, FOREVER, 0, 2 * FOREVER - 1, 3 * FOREVER - 1),
        ]),
        case("the last call that waits for a debt is refunded completely", borrowing(1, SECOND, Some(2)))
            .steps([
                admits(0, 4, 0, 4 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 5 * S),
                waits(0, 3, FOREVER, 3 * S, 0, 8 * S),
                refund_of(0, 2),
                peek_refused(0, 0, 3 * S, 5 * S),
                // Without the second call the bucket would be full at 4 s. That call's slot is at 2 s, but the bucket only
                // knows that it is not after 3 s.
                refund_of(0, 0),
                peek_refused(0, 0, 2 * S, 4 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 5 * S),
            ]),
        case("a step back moves a debt", borrowing(1, SECOND, Some(1))).steps([
            admits(10 * S, 10, 0, 10 * S),
            refuses(5 * S, 1, 0, 9 * S, 10 * S),
            peek_refused(6 * S, 0, 8 * S, 9 * S),
        ]),
    ]
}

fn warmups() -> Vec<Case> {
    // At 1 per second with 4 s: 4 permits are stored when cold, those above 2 take 1 to 3 s, and one is stored per second.
    let policy = || warming_up(1, SECOND, Duration::from_secs(4));
    vec![
        case("a cold bucket starts slowly", policy()).steps([
            peek(0, 4, 0),
            // The price climbs to 3 s at 4 permits: 2.5 s between 3 and 4, 1.5 s between 2 and 3.
            admits(0, 1, 0, 3_500_000),
            refuses(0, 1, 0, 2_500_000, 3_500_000),
            times_out(0, 1, 2_499_999, 0, 2_500_000, 3_500_000),
            admits(2_500_000, 1, 0, 3_500_000),
            admits(4 * S, 1, 0, 4 * S),
            // One stored permit and a fresh one.
            waits(4 * S, 2, S, S, 0, 7 * S),
            peek(7 * S, 0, 4 * S),
            peek(9 * S, 2, 2 * S),
            peek(11 * S, 4, 0),
            // Everything stored at once: 4 s to warm up, 2 s at the rate, and 6 fresh permits.
            admits(11 * S, 10, 0, 16 * S),
            refuses(22_999_999, 1, 0, 1, 4_000_001),
            admits(23 * S, 1, 0, 5 * S),
        ]),
        case("only the last call of a bucket with warmup is refunded", policy()).steps([
            admits(0, 1, 0, 3_500_000),
            waits(0, 1, FOREVER, 2_500_000, 0, 6 * S),
            refund_of(S, 0),
            peek_refused(S, 0, 3 * S, 5 * S),
            refund_of(S, 1),
            peek_refused(S, 0, 1_500_000, 2_500_000),
            refund_of(S, 0),
            peek(S, 4, 0),
        ]),
        case("a refund without a receipt lowers the debt", policy()).steps([
            admits(0, 1, 0, 3_500_000),
            refund(0, 1),
            refuses(0, 1, 0, 1_500_000, 2_500_000),
            refund(0, 5),
            peek(0, 3, S),
        ]),
        // Here the stored permits miss their maximum by the last bit of a double.
        case(
            "a bucket with warmup is cold when its state expires",
            warming_up(3, Duration::from_micros(6_250_000), Duration::from_micros(11_740_782)),
        )
        .steps([admits(0, 3, 0, 18_370_391), peek(18_370_390, 5, 1), peek(18_370_391, 5, 0)]),
        case("a step back moves a debt with warmup", policy()).steps([
            admits(20 * S, 1, 0, 3_500_000),
            peek_refused(10 * S, 0, 2_500_000, 3_500_000),
            refuses(10 * S, 1, 0, 2_500_000, 3_500_000),
            peek_refused(11 * S, 0, 1_500_000, 2_500_000),
            refund(9 * S, 1),
            peek_refused(9 * S, 0, 1_500_000, 2_500_000),
        ]),
        case("the debt with warmup is at most ten years", policy()).steps([
            within(FOREVER, 0, never(0, 400_000_000, 4, 0)),
            within(FOREVER, 0, never(0, u64::MAX, 4, 0)),
            admits(0, 315_359_998, 0, 315_360_004 * S),
        ]),
    ]
}
