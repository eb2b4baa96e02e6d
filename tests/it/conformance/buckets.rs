//! Token buckets, leaky buckets, and buckets that refill at intervals.

use std::time::Duration;

use ratelimits::{Rate, TokenBucket};

use super::{Case, S, never, no, peek, refund, refund_of, yes};
use crate::model::Policy;
use crate::support::policies::{
    draining_bucket, interval_refill, leaky_bucket, pair, token_bucket, token_bucket_for,
};

const SECOND: Duration = Duration::from_secs(1);

pub(super) fn cases() -> Vec<Case> {
    [continuous(), sizes(), meters(), intervals()].into_iter().flatten().collect()
}

fn continuous() -> Vec<Case> {
    vec![
        Case {
            name: "a bucket of 3 refills by one every half second",
            policies: vec![token_bucket(2, SECOND, 3)],
            steps: vec![
                peek(0, 3, 0),
                yes(0, 1, 2, 500_000),
                yes(0, 1, 1, S),
                yes(0, 1, 0, 1_500_000),
                no(0, 1, 0, 500_000, 1_500_000),
                no(499_999, 1, 0, 1, 1_000_001),
                yes(500_000, 1, 0, 1_500_000),
                peek(999_999, 0, 1_000_001),
                peek(S, 1, S),
                peek(2 * S, 3, 0),
                yes(3600 * S, 3, 0, 1_500_000),
            ],
        },
        Case {
            name: "a cost waits for all of its permits",
            policies: vec![token_bucket(1, SECOND, 5)],
            steps: vec![
                yes(0, 3, 2, 3 * S),
                no(0, 3, 2, S, 3 * S),
                no(999_999, 3, 2, 1, 2_000_001),
                yes(S, 3, 0, 5 * S),
                never(S, 6, 0, 5 * S),
                never(S, u64::MAX, 0, 5 * S),
                yes(6 * S, 5, 0, 5 * S),
            ],
        },
        Case {
            name: "a clock that steps back finds a bucket at most empty",
            policies: vec![token_bucket(1, SECOND, 2)],
            steps: vec![
                yes(10 * S, 2, 0, 2 * S),
                // It would be full at 12 s, which is out of reach from 9 s. The refused call moves that to 11 s.
                no(9 * S, 1, 0, S, 2 * S),
                yes(10 * S, 1, 0, 2 * S),
                // A look moves nothing: it is full at 12 s.
                peek(9_500_000, 0, 2 * S),
                peek(10_500_000, 0, 1_500_000),
                // Nor does a charge that never fits where the state is within reach.
                never(10_100_000, 3, 0, 1_900_000),
                peek(11 * S, 1, S),
            ],
        },
        Case {
            name: "a bucket takes back by receipt what time has not brought back",
            policies: vec![token_bucket(1, SECOND, 3)],
            steps: vec![
                yes(0, 2, 1, 2 * S),
                yes(0, 1, 0, 3 * S),
                // Full at 2 s after the first charge: half of it is back at 1 s.
                refund_of(S, 0),
                peek(S, 2, S),
                refund_of(S, 1),
                peek(S, 3, 0),
                // All of it is back a second later, whatever else is missing.
                yes(20 * S, 1, 2, S),
                yes(20_500_000, 2, 0, 2_500_000),
                refund_of(21 * S, 2),
                peek(21 * S, 1, 2 * S),
            ],
        },
        Case {
            name: "a bucket takes back without a receipt up to full",
            policies: vec![token_bucket(1, SECOND, 3)],
            steps: vec![
                refund(0, 1),
                peek(0, 3, 0),
                yes(10 * S, 3, 0, 3 * S),
                refund(10_500_000, 1),
                peek(10_500_000, 1, 1_500_000),
                refund(10_500_000, u64::MAX),
                peek(10_500_000, 3, 0),
                yes(10_500_000, 3, 0, 3 * S),
            ],
        },
    ]
}

fn sizes() -> Vec<Case> {
    let default = |rate: Rate, permits, period| {
        pair(TokenBucket::new(rate), Policy::bucket_for(permits, period, 1_000_000_000))
    };
    vec![
        Case {
            name: "a permit takes whole microseconds, rounded up",
            policies: vec![token_bucket(3, SECOND, 3)],
            steps: vec![
                yes(0, 3, 0, 1_000_002),
                no(333_333, 1, 0, 1, 666_669),
                yes(333_334, 1, 0, 1_000_002),
            ],
        },
        Case {
            name: "a bucket for a time keeps its fraction",
            policies: vec![token_bucket_for(2, SECOND, Duration::from_millis(750))],
            steps: vec![
                yes(0, 1, 0, 500_000),
                no(249_999, 1, 0, 1, 250_001),
                yes(250_000, 1, 0, 750_000),
                never(250_000, 2, 0, 750_000),
            ],
        },
        Case {
            name: "a bucket for a short time holds one permit",
            policies: vec![token_bucket_for(1, SECOND, Duration::from_millis(10))],
            steps: vec![yes(0, 1, 0, S), no(0, 1, 0, S, S), yes(S, 1, 0, S)],
        },
        Case {
            name: "a bucket holds one second's worth by default",
            policies: vec![default(Rate::new(150, Duration::from_secs(60)), 150, 60_000_000_000)],
            steps: vec![
                yes(0, 2, 0, 800_000),
                no(0, 1, 0, 200_000, 800_000),
                yes(200_000, 1, 0, S),
                never(200_000, 3, 0, S),
            ],
        },
        Case {
            name: "a slow bucket holds one permit by default",
            policies: vec![default(Rate::new(1, Duration::from_secs(60)), 1, 60_000_000_000)],
            steps: vec![yes(0, 1, 0, 60 * S), no(59_999_999, 1, 0, 1, 1), yes(60 * S, 1, 0, 60 * S)],
        },
        Case {
            name: "a large bucket stays exact",
            policies: vec![token_bucket(1_000_000, SECOND, 300_000_000_000)],
            steps: vec![
                yes(1, 299_999_999_999, 1, 299_999_999_999),
                no(1, 3, 1, 2, 299_999_999_999),
                no(2, 3, 2, 1, 299_999_999_998),
                yes(3, 3, 0, 300_000_000_000),
                never(3, 300_000_000_001, 0, 300_000_000_000),
            ],
        },
        Case {
            name: "the slowest bucket stays exact",
            policies: vec![token_bucket(1, 3650 * 86_400 * SECOND, 1)],
            steps: vec![
                yes(7, 1, 0, 315_360_000 * S),
                no(8, 1, 0, 315_359_999_999_999, 315_359_999_999_999),
                no(315_360_000 * S + 6, 1, 0, 1, 1),
                yes(315_360_000 * S + 7, 1, 0, 315_360_000 * S),
            ],
        },
    ]
}

fn meters() -> Vec<Case> {
    vec![
        Case {
            name: "a leaky bucket of 4 leaks one a second",
            policies: vec![leaky_bucket(4, 1, SECOND)],
            steps: vec![
                yes(0, 3, 1, 3 * S),
                no(500_000, 2, 1, 500_000, 2_500_000),
                yes(S, 2, 0, 4 * S),
                no(S, 4, 0, 4 * S, 4 * S),
                never(S, 5, 0, 4 * S),
                peek(5 * S, 4, 0),
            ],
        },
        Case {
            name: "a leaky bucket drains by whole microseconds, rounded up",
            policies: vec![draining_bucket(3, Duration::from_secs(10))],
            steps: vec![
                yes(0, 1, 2, 3_333_334),
                yes(0, 2, 0, 10_000_002),
                no(0, 1, 0, 3_333_334, 10_000_002),
                no(3_333_333, 1, 0, 1, 6_666_669),
                yes(3_333_334, 1, 0, 10_000_002),
            ],
        },
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        Case {
            name: "a refill of 2 comes at once, every 10 s from the call that found the bucket full",
            policies: vec![interval_refill(2, 10 * SECOND, 5)],
            steps: vec![
                yes(3 * S, 4, 1, 20 * S),
                no(3 * S, 2, 1, 10 * S, 20 * S),
                no(12_999_999, 2, 1, 1, 10_000_001),
                yes(13 * S, 2, 1, 20 * S),
                peek(22_999_999, 1, 10_000_001),
                peek(23 * S, 3, 10 * S),
                peek(33 * S, 5, 0),
                yes(47 * S, 5, 0, 30 * S),
                no(56_999_999, 1, 0, 1, 20_000_001),
                no(57 * S, 3, 2, 10 * S, 20 * S),
                yes(57 * S, 1, 1, 20 * S),
                never(57 * S, 6, 1, 20 * S),
            ],
        },
        Case {
            name: "a clock that steps back starts the next refill anew",
            policies: vec![interval_refill(2, 10 * SECOND, 5)],
            steps: vec![
                yes(57 * S, 4, 1, 20 * S),
                peek(50 * S, 1, 20 * S),
                peek(66 * S, 1, 11 * S),
                // The refused call moves it: the refills come at 60 s and 70 s.
                no(50 * S, 2, 1, 10 * S, 20 * S),
                peek(60 * S, 3, 10 * S),
            ],
        },
        Case {
            name: "a refill is not given back a second time",
            policies: vec![interval_refill(1, 10 * SECOND, 3)],
            steps: vec![
                yes(0, 2, 1, 20 * S),
                yes(5 * S, 1, 0, 25 * S),
                // One of the first charge's two is back at 10 s.
                refund_of(10 * S, 0),
                peek(10 * S, 2, 10 * S),
                refund_of(10 * S, 1),
                peek(10 * S, 3, 0),
                yes(40 * S, 3, 0, 30 * S),
                refund(41 * S, 1),
                peek(41 * S, 1, 19 * S),
                refund(41 * S, u64::MAX),
                peek(41 * S, 3, 0),
            ],
        },
    ]
}
