//! Buckets that lend, and buckets that warm up.

use std::time::Duration;

use super::{Case, FOREVER, S, gives_up, never, no, peek, refund, refund_of, waiting, waits, yes};
use crate::support::policies::{borrowing, borrowing_for, warming_up};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [lending(), warming()].into_iter().flatten().collect()
}

fn lending() -> Vec<Case> {
    vec![
        Case {
            name: "a call of any cost goes ahead, and the next one waits for what it was short of",
            policies: vec![borrowing(10, SECOND, None)],
            steps: vec![
                yes(0, 25, 0, 2_500_000),
                no(0, 1, 0, 1_500_000, 2_500_000),
                gives_up(0, 1, 1_499_999, 0, 1_500_000, 2_500_000),
                // It waits for the debt before it, not for what it takes itself.
                waits(0, 100, 1_500_000, 1_500_000, 0, 12_500_000),
                no(11_499_999, 1, 0, 1, 1_000_001),
                yes(11_500_000, 1, 0, 1_100_000),
                peek(12_500_000, 9, 100_000),
                peek(12_600_000, 10, 0),
            ],
        },
        Case {
            name: "what a call takes is rounded up once",
            policies: vec![borrowing(3, SECOND, Some(3))],
            steps: vec![
                yes(0, 3, 0, S),
                yes(0, 1, 0, 1_333_334),
                no(0, 1, 0, 333_334, 1_333_334),
                yes(333_334, 2, 0, 1_666_667),
            ],
        },
        Case {
            name: "a bucket that lends holds exactly so long a time's worth",
            policies: vec![borrowing_for(10, SECOND, Duration::from_millis(250))],
            steps: vec![
                yes(0, 2, 0, 200_000),
                yes(0, 1, 0, 300_000),
                no(0, 1, 0, 50_000, 300_000),
                peek(200_000, 1, 100_000),
            ],
        },
        Case {
            name: "nobody is lent more than ten years",
            policies: vec![borrowing(1, 86_400 * SECOND, Some(1))],
            steps: vec![
                waiting(FOREVER, 0, never(0, 3651, 1, 0)),
                waiting(FOREVER, 0, never(0, u64::MAX, 1, 0)),
                yes(0, 3650, 0, FOREVER),
                no(0, 1, 0, 3649 * 86_400 * S, FOREVER),
            ],
        },
        Case {
            name: "the longest debt stays exact",
            policies: vec![borrowing(1, 86_400 * SECOND, Some(3650))],
            steps: vec![
                yes(7, 3650, 0, FOREVER),
                yes(7, 3650, 0, 2 * FOREVER),
                waits(7, 3650, FOREVER, FOREVER, 0, 3 * FOREVER),
                gives_up(8, 1, FOREVER, 0, 2 * FOREVER - 1, 3 * FOREVER - 1),
            ],
        },
        Case {
            name: "the last of those who wait for a debt is gone without trace",
            policies: vec![borrowing(1, SECOND, Some(2))],
            steps: vec![
                yes(0, 4, 0, 4 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 5 * S),
                waits(0, 3, FOREVER, 3 * S, 0, 8 * S),
                refund_of(0, 2),
                peek(0, 0, 5 * S),
                // Without the second the bucket would be full at 4 s. That one waits until 2 s, of which the bucket only knows
                // now that it is not after 3 s.
                refund_of(0, 0),
                peek(0, 0, 4 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 5 * S),
            ],
        },
        Case {
            name: "a clock that steps back takes a debt with it",
            policies: vec![borrowing(1, SECOND, Some(1))],
            steps: vec![yes(10 * S, 10, 0, 10 * S), no(5 * S, 1, 0, 9 * S, 10 * S), peek(6 * S, 0, 9 * S)],
        },
    ]
}

fn warming() -> Vec<Case> {
    // At 1 a second with 4 s: 4 are stored when cold, those above 2 take from 1 to 3 s, and one is stored each second.
    let policy = || vec![warming_up(1, SECOND, Duration::from_secs(4))];
    vec![
        Case {
            name: "a cold bucket is slow, and comes to its rate",
            policies: policy(),
            steps: vec![
                peek(0, 4, 0),
                // From the line that climbs to 3 s at 4: between 3 and 4 it is 2.5 s, between 2 and 3 1.5 s.
                yes(0, 1, 0, 3_500_000),
                no(0, 1, 0, 2_500_000, 3_500_000),
                gives_up(0, 1, 2_499_999, 0, 2_500_000, 3_500_000),
                yes(2_500_000, 1, 0, 3_500_000),
                yes(4 * S, 1, 0, 4 * S),
                // One that is stored, and a fresh one.
                waits(4 * S, 2, S, S, 0, 7 * S),
                peek(7 * S, 0, 4 * S),
                peek(9 * S, 2, 2 * S),
                peek(11 * S, 4, 0),
                // All that is stored at once: 4 s to warm up, 2 s that are as at the rate, and 6 fresh ones.
                yes(11 * S, 10, 0, 16 * S),
                no(22_999_999, 1, 0, 1, 4_000_001),
                yes(23 * S, 1, 0, 5 * S),
            ],
        },
        Case {
            name: "the last call of a bucket that warms up is undone, and no other",
            policies: policy(),
            steps: vec![
                yes(0, 1, 0, 3_500_000),
                waits(0, 1, FOREVER, 2_500_000, 0, 6 * S),
                refund_of(S, 0),
                peek(S, 0, 5 * S),
                refund_of(S, 1),
                peek(S, 0, 2_500_000),
                refund_of(S, 0),
                peek(S, 4, 0),
            ],
        },
        Case {
            name: "without a receipt a bucket that warms up is less in debt",
            policies: policy(),
            steps: vec![
                yes(0, 1, 0, 3_500_000),
                refund(0, 1),
                no(0, 1, 0, 1_500_000, 2_500_000),
                refund(0, 5),
                peek(0, 3, S),
            ],
        },
        Case {
            // Where storing for as long as it takes misses what is most by the last bit of a double.
            name: "a bucket that warms up is cold when its state says nothing more",
            policies: vec![warming_up(
                3,
                Duration::from_micros(6_250_000),
                Duration::from_micros(11_740_782),
            )],
            steps: vec![yes(0, 3, 0, 18_370_391), peek(18_370_390, 5, 1), peek(18_370_391, 5, 0)],
        },
        Case {
            name: "a clock that steps back takes a debt with what is stored",
            policies: policy(),
            steps: vec![
                yes(20 * S, 1, 0, 3_500_000),
                peek(10 * S, 0, 3_500_000),
                no(10 * S, 1, 0, 2_500_000, 3_500_000),
                peek(11 * S, 0, 2_500_000),
                refund(9 * S, 1),
                peek(9 * S, 0, 2_500_000),
            ],
        },
        Case {
            name: "a bucket that warms up lends no more than ten years",
            policies: policy(),
            steps: vec![
                waiting(FOREVER, 0, never(0, 400_000_000, 4, 0)),
                waiting(FOREVER, 0, never(0, u64::MAX, 4, 0)),
                yes(0, 315_359_998, 0, 315_360_004 * S),
            ],
        },
    ]
}
