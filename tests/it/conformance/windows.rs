//! Fixed windows, exact logs and counters of sub-windows.

use std::time::Duration;

use super::{Case, S, Step, never, no, peek, refund, refund_of, yes};
use crate::support::policies::{fixed_window, sliding_window};

const TEN: Duration = Duration::from_secs(10);
const FIVE: Duration = Duration::from_secs(5);

pub(super) fn cases() -> Vec<Case> {
    [fixed(), logs(), log_refunds(), counters()].into_iter().flatten().collect()
}

fn fixed() -> Vec<Case> {
    vec![
        Case {
            name: "a window opens with its first call",
            policies: vec![fixed_window(3, TEN, false)],
            steps: vec![
                peek(0, 3, 0),
                yes(4 * S, 1, 2, 10 * S),
                yes(5 * S, 2, 0, 9 * S),
                no(5 * S, 1, 0, 9 * S, 9 * S),
                no(13_999_999, 1, 0, 1, 1),
                yes(14 * S, 1, 2, 10 * S),
                never(14 * S, 4, 2, 10 * S),
                never(14 * S, u64::MAX, 2, 10 * S),
                peek(24 * S, 3, 0),
                yes(30 * S, 1, 2, 10 * S),
            ],
        },
        Case {
            name: "an aligned window ends on a multiple of its period",
            policies: vec![fixed_window(3, TEN, true)],
            steps: vec![
                yes(4 * S, 1, 2, 6 * S),
                yes(9_999_999, 2, 0, 1),
                no(9_999_999, 1, 0, 1, 1),
                yes(10 * S, 3, 0, 10 * S),
                no(10 * S, 1, 0, 10 * S, 10 * S),
            ],
        },
        Case {
            // 1,700,000,000 s is 20 s after a whole minute.
            name: "windows are aligned since the epoch",
            policies: vec![fixed_window(3, Duration::from_secs(60), true)],
            steps: vec![yes(0, 3, 0, 40 * S), no(39_999_999, 1, 0, 1, 1), yes(40 * S, 1, 2, 60 * S)],
        },
        Case {
            name: "a window keeps its count when the limit changes",
            policies: vec![
                fixed_window(3, TEN, false),
                fixed_window(5, TEN, false),
                fixed_window(2, TEN, false),
            ],
            steps: vec![
                yes(0, 3, 0, 10 * S),
                Step::Under(1),
                yes(S, 1, 1, 9 * S),
                Step::Under(2),
                no(2 * S, 1, 0, 8 * S, 8 * S),
                peek(2 * S, 0, 8 * S),
                Step::Under(0),
                no(3 * S, 1, 0, 7 * S, 7 * S),
                yes(10 * S, 3, 0, 10 * S),
            ],
        },
        Case {
            name: "the largest window stays exact",
            policies: vec![fixed_window(1_000_000_000_000, Duration::from_secs(3650 * 86_400), false)],
            steps: vec![
                yes(7, 999_999_999_999, 1, 315_360_000 * S),
                no(8, 2, 1, 315_359_999_999_999, 315_359_999_999_999),
                yes(315_360_000 * S + 6, 1, 0, 1),
                never(315_360_000 * S + 7, 1_000_000_000_001, 1_000_000_000_000, 0),
            ],
        },
        Case {
            name: "a window of the future keeps its count and starts now",
            policies: vec![fixed_window(3, TEN, false)],
            steps: vec![
                yes(100 * S, 2, 1, 10 * S),
                peek(50 * S, 1, 10 * S),
                no(50 * S, 2, 1, 10 * S, 10 * S),
                peek(59_999_999, 1, 1),
                peek(60 * S, 3, 0),
            ],
        },
        Case {
            name: "an aligned window of the future starts with the present one",
            policies: vec![fixed_window(3, TEN, true)],
            steps: vec![
                yes(104 * S, 2, 1, 6 * S),
                no(57 * S, 2, 1, 3 * S, 3 * S),
                yes(58 * S, 1, 0, 2 * S),
                peek(60 * S, 3, 0),
            ],
        },
        Case {
            name: "a window takes back what was charged to it, while it is open",
            policies: vec![fixed_window(3, TEN, false)],
            steps: vec![
                yes(0, 2, 1, 10 * S),
                refund_of(9_999_999, 0),
                peek(9_999_999, 3, 0),
                yes(20 * S, 3, 0, 10 * S),
                yes(30 * S, 2, 1, 10 * S),
                refund_of(30 * S, 1),
                peek(30 * S, 1, 10 * S),
                refund(30 * S, 1),
                peek(30 * S, 2, 10 * S),
                refund(30 * S, u64::MAX),
                peek(30 * S, 3, 0),
                // A window that was moved is another one.
                yes(50 * S, 2, 1, 10 * S),
                no(45 * S, 3, 1, 10 * S, 10 * S),
                refund_of(45 * S, 3),
                peek(45 * S, 1, 10 * S),
            ],
        },
    ]
}

fn logs() -> Vec<Case> {
    vec![
        Case {
            name: "a charge counts for exactly a period",
            policies: vec![sliding_window(3, TEN, None)],
            steps: vec![
                peek(0, 3, 0),
                yes(0, 1, 2, 10 * S),
                yes(4 * S, 2, 0, 10 * S),
                no(4 * S, 1, 0, 6 * S, 10 * S),
                no(4 * S, 2, 0, 10 * S, 10 * S),
                no(9_999_999, 1, 0, 1, 4_000_001),
                yes(10 * S, 1, 0, 10 * S),
                no(13_999_999, 2, 0, 1, 6_000_001),
                yes(14 * S, 2, 0, 10 * S),
                never(14 * S, 4, 0, 10 * S),
                never(14 * S, u64::MAX, 0, 10 * S),
                peek(24 * S, 3, 0),
            ],
        },
        Case {
            name: "a log keeps its count when the limit changes",
            policies: vec![
                sliding_window(4, TEN, None),
                sliding_window(2, TEN, None),
                sliding_window(6, TEN, None),
            ],
            steps: vec![
                yes(0, 1, 3, 10 * S),
                yes(S, 1, 2, 10 * S),
                yes(2 * S, 1, 1, 10 * S),
                yes(3 * S, 1, 0, 10 * S),
                Step::Under(1),
                // Down to 1 once the third has ended.
                no(4 * S, 1, 0, 8 * S, 9 * S),
                peek(4 * S, 0, 9 * S),
                Step::Under(2),
                yes(4 * S, 2, 0, 10 * S),
                Step::Under(1),
                no(12_999_999, 1, 0, 1_000_001, 1_000_001),
                no(13 * S, 2, 0, S, S),
                yes(14 * S, 2, 0, 10 * S),
            ],
        },
        Case {
            name: "charges of the future are moved to now",
            policies: vec![sliding_window(3, TEN, None)],
            steps: vec![
                yes(200 * S, 1, 2, 10 * S),
                yes(205 * S, 1, 1, 10 * S),
                peek(150 * S, 1, 10 * S),
                no(150 * S, 2, 1, 10 * S, 10 * S),
                peek(159_999_999, 1, 1),
                yes(159_999_999, 1, 0, 10 * S),
                peek(160 * S, 2, 9_999_999),
            ],
        },
        Case {
            name: "charges of the past stay when those of the future are moved",
            policies: vec![sliding_window(4, TEN, None)],
            steps: vec![
                yes(0, 1, 3, 10 * S),
                yes(8 * S, 1, 2, 10 * S),
                yes(9 * S, 1, 1, 10 * S),
                yes(5 * S, 1, 0, 10 * S),
                peek(9_999_999, 0, 5_000_001),
                peek(10 * S, 1, 5 * S),
                peek(15 * S, 4, 0),
            ],
        },
    ]
}

fn log_refunds() -> Vec<Case> {
    vec![
        Case {
            name: "a log takes back by receipt while the charge counts",
            policies: vec![sliding_window(3, TEN, None)],
            steps: vec![
                yes(300 * S, 1, 2, 10 * S),
                yes(300 * S, 1, 1, 10 * S),
                yes(301 * S, 1, 0, 10 * S),
                refund_of(305 * S, 0),
                peek(305 * S, 1, 6 * S),
                refund_of(305 * S, 2),
                peek(305 * S, 2, 5 * S),
                refund(305 * S, 1),
                peek(305 * S, 3, 0),
                yes(500 * S, 1, 2, 10 * S),
                yes(505 * S, 1, 1, 10 * S),
                refund_of(510 * S, 3),
                peek(510 * S, 2, 5 * S),
            ],
        },
        Case {
            name: "a log takes back the newest first",
            policies: vec![sliding_window(3, TEN, None)],
            steps: vec![
                yes(400 * S, 2, 1, 10 * S),
                yes(405 * S, 1, 0, 10 * S),
                refund(406 * S, 2),
                peek(406 * S, 2, 4 * S),
                refund(406 * S, u64::MAX),
                peek(406 * S, 3, 0),
            ],
        },
        Case {
            name: "a charge that was moved has lost its receipt",
            policies: vec![sliding_window(3, TEN, None)],
            steps: vec![
                yes(600 * S, 1, 2, 10 * S),
                no(590 * S, 3, 2, 10 * S, 10 * S),
                refund_of(590 * S, 0),
                peek(590 * S, 2, 10 * S),
                // One of the future that nobody has moved has not.
                yes(700 * S, 1, 2, 10 * S),
                refund_of(690 * S, 1),
                peek(690 * S, 3, 0),
            ],
        },
    ]
}

fn counters() -> Vec<Case> {
    vec![
        Case {
            name: "a sub-window counts until its end and a period",
            policies: vec![sliding_window(3, TEN, Some(FIVE))],
            steps: vec![
                yes(S, 1, 2, 14 * S),
                yes(7 * S, 2, 0, 13 * S),
                no(7 * S, 1, 0, 8 * S, 13 * S),
                no(14_999_999, 1, 0, 1, 5_000_001),
                yes(15 * S, 1, 0, 15 * S),
                yes(104_999_999, 1, 2, 10_000_001),
                yes(105 * S, 1, 1, 15 * S),
                no(114_999_999, 2, 1, 1, 5_000_001),
                yes(115 * S, 2, 0, 15 * S),
                never(115 * S, 4, 0, 15 * S),
            ],
        },
        Case {
            name: "sub-windows of the future are moved to the present one",
            policies: vec![sliding_window(3, TEN, Some(FIVE))],
            steps: vec![
                yes(203 * S, 2, 1, 12 * S),
                // Within one sub-window the clock steps back unseen.
                no(201 * S, 2, 1, 14 * S, 14 * S),
                peek(214_999_999, 1, 1),
                no(198 * S, 2, 1, 12 * S, 12 * S),
                peek(209_999_999, 1, 1),
                peek(210 * S, 3, 0),
            ],
        },
        Case {
            name: "a sub-window takes back what was charged to it",
            policies: vec![sliding_window(3, TEN, Some(FIVE))],
            steps: vec![
                yes(S, 1, 2, 14 * S),
                yes(2 * S, 1, 1, 13 * S),
                yes(6 * S, 1, 0, 14 * S),
                refund_of(14_999_999, 0),
                peek(14_999_999, 1, 5_000_001),
                refund_of(15 * S, 1),
                peek(15 * S, 2, 5 * S),
                refund(15 * S, 1),
                peek(15 * S, 3, 0),
            ],
        },
    ]
}

/// More permits in all than the script's running totals count to, which is 2^50.
pub(super) fn a_long_life() -> Case {
    const HALF: u64 = 500_000_000_000;
    let mut steps = vec![yes(0, HALF, HALF.into(), 15 * S)];
    for tens in 1..2300 {
        let now = tens * 10 * S;
        // The charge that makes 2^50 + 1 of 2251 halves, so that the refund crosses the border backwards.
        let part = if tens == 2251 { (1 << 50) + 1 - 2251 * HALF } else { 4 };
        steps.extend([
            yes(now, part, (HALF - part).into(), 15 * S),
            refund(now, 3),
            peek(now, (HALF - part + 3).into(), 15 * S),
            yes(now, 3, (HALF - part).into(), 15 * S),
            yes(now, HALF - part, 0, 15 * S),
            no(now, 1, 0, 5 * S, 15 * S),
        ]);
    }
    let policies = vec![sliding_window(2 * HALF, TEN, Some(FIVE))];
    Case { name: "a counter that has counted very far", policies, steps }
}
