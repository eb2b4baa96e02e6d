//! What is given back of buckets in which calls wait, or were charged since.

use std::time::Duration;

use super::{Case, FOREVER, S, Step, gives_up, no, peek, refund, refund_of, waits, yes};
use crate::support::policies::{interval_refill, queue, token_bucket};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [lines(), stale(), queues()].into_iter().flatten().collect()
}

fn lines() -> Vec<Case> {
    vec![
        Case {
            name: "the last of a line is gone without trace",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(0, 2, 0, 2 * S),
                waits(0, 1, FOREVER, S, 0, 3 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 4 * S),
                refund_of(0, 2),
                peek(0, 0, 3 * S),
                refund_of(500_000, 1),
                peek(500_000, 0, 1_500_000),
                // Nobody waits any more, so the first has as much back as time has not.
                refund_of(500_000, 0),
                peek(500_000, 2, 0),
            ],
        },
        Case {
            name: "of the middle of a line is given back what moves those behind by as much",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(0, 2, 0, 2 * S),
                waits(0, 1, FOREVER, S, 0, 3 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 4 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 5 * S),
                // Without them the bucket would be full at 2 s and 3 s, and the last one waits until then.
                refund_of(0, 0),
                refund_of(0, 1),
                peek(0, 0, 5 * S),
                // Without this one it would be full at 4 s.
                refund_of(0, 2),
                peek(0, 0, 4 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 5 * S),
                peek(3 * S, 0, 2 * S),
            ],
        },
        Case {
            name: "the last that waits for a refill is gone without trace",
            policies: vec![interval_refill(5, 10 * SECOND, 5)],
            steps: vec![
                yes(0, 5, 0, 10 * S),
                waits(0, 1, FOREVER, 10 * S, 0, 20 * S),
                waits(0, 5, FOREVER, 20 * S, 0, 30 * S),
                refund_of(0, 2),
                peek(0, 0, 20 * S),
                waits(0, 4, FOREVER, 10 * S, 0, 20 * S),
                // The middle: at 10 s one of 6 would be missing.
                refund_of(0, 1),
                peek(0, 0, 20 * S),
                waits(0, 1, FOREVER, 10 * S, 0, 20 * S),
            ],
        },
        Case {
            name: "without a receipt a line is given back down to its last slot",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(0, 2, 0, 2 * S),
                waits(0, 1, FOREVER, S, 0, 3 * S),
                refund(0, u64::MAX),
                peek(0, 1, S),
            ],
        },
    ]
}

fn stale() -> Vec<Case> {
    // At 5 s the bucket is full, as five of the ten have been given back, and ten more are taken: of the other five nothing is
    // left to give back.
    let steps = || -> Vec<Step> {
        let charges = (0..10).map(|i: i64| yes(0, 1, 9 - i128::from(i), (i + 1) * S));
        let first = (0..5).map(|nth| refund_of(0, nth));
        let later = (5..10).map(|nth| refund_of(5 * S, nth));
        let full = [peek(0, 5, 5 * S), yes(5 * S, 10, 0, 10 * S)];
        let after = [no(5 * S, 1, 0, S, 10 * S), refund_of(5 * S, 10), peek(5 * S, 10, 0)];
        charges.chain(first).chain(full).chain(later).chain(after).collect()
    };
    // Of four times ten years the running total of what was given back has come round.
    let come_round = || -> Vec<Step> {
        const DAY: i64 = 86_400 * S;
        let round = |i: i64| {
            let left = i128::from(10 - i);
            let large = yes(0, 3640, left, (3640 + i) * DAY);
            let small = yes(0, 1, left - 1, (3641 + i) * DAY);
            [large, small, refund_of(0, 2 * i as usize), peek(0, 3649 - i128::from(i), (1 + i) * DAY)]
        };
        // The last small one was charged before the last large one was given back, and is worth what it took.
        (0..4).flat_map(round).chain([refund_of(0, 7), peek(0, 3647, 3 * DAY)]).collect()
    };
    // The receipt says that more would be missing than is, so it was not of this state that it took.
    let after_a_reset = || {
        vec![
            yes(0, 10, 0, 10 * S),
            Step::Reset,
            yes(0, 1, 9, S),
            refund_of(0, 0),
            peek(0, 9, S),
            refund_of(0, 1),
            peek(0, 10, 0),
        ]
    };
    vec![
        Case {
            name: "what others got back is not given back again",
            policies: vec![token_bucket(1, SECOND, 10)],
            steps: steps(),
        },
        Case {
            name: "what others got back of an interval bucket is not given back again",
            policies: vec![interval_refill(1, SECOND, 10)],
            steps: steps(),
        },
        Case {
            name: "the total of what was given back comes round",
            policies: vec![token_bucket(1, 86_400 * SECOND, 3650)],
            steps: come_round(),
        },
        Case {
            name: "a receipt from before a reset",
            policies: vec![token_bucket(1, SECOND, 10)],
            steps: after_a_reset(),
        },
        Case {
            name: "a receipt of an interval bucket from before a reset",
            policies: vec![interval_refill(1, SECOND, 10)],
            steps: after_a_reset(),
        },
    ]
}

fn queues() -> Vec<Case> {
    vec![Case {
        name: "a queue gives back its last place, and no other",
        policies: vec![queue(2, 1, SECOND)],
        steps: vec![
            yes(0, 1, 2, S),
            waits(0, 1, FOREVER, S, 1, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            refund_of(0, 0),
            refund_of(0, 1),
            gives_up(0, 1, FOREVER, 0, S, 3 * S),
            refund_of(500_000, 2),
            waits(500_000, 1, FOREVER, 1_500_000, 0, 2_500_000),
            refund_of(500_000, 3),
            // Now this is the last, and half of it is still to come.
            refund_of(1_500_000, 1),
            yes(1_500_000, 1, 2, S),
        ],
    }]
}
