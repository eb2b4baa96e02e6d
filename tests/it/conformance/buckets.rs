//! Token buckets, leaky buckets as meters, and interval refill.

use std::time::Duration;

use ratelimits::{Rate, TokenBucket};

use super::{Case, S, admits, case, never, peek, peek_refused, refund, refund_of, refuses};
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
        case("a bucket refills continuously", token_bucket(2, SECOND, 3)).steps([
            peek(0, 3, 0),
            admits(0, 1, 2, 500_000),
            admits(0, 1, 1, S),
            admits(0, 1, 0, 1_500_000),
            refuses(0, 1, 0, 500_000, 1_500_000),
            refuses(499_999, 1, 0, 1, 1_000_001),
            admits(500_000, 1, 0, 1_500_000),
            peek_refused(999_999, 0, 1, 1_000_001),
            peek(S, 1, S),
            peek(2 * S, 3, 0),
            admits(3600 * S, 3, 0, 1_500_000),
        ]),
        case("a call is admitted once all its permits are there", token_bucket(1, SECOND, 5)).steps([
            admits(0, 3, 2, 3 * S),
            refuses(0, 3, 2, S, 3 * S),
            refuses(999_999, 3, 2, 1, 2_000_001),
            admits(S, 3, 0, 5 * S),
            never(S, 6, 0, 5 * S),
            never(S, u64::MAX, 0, 5 * S),
            admits(6 * S, 5, 0, 5 * S),
        ]),
        case("a bucket is at most empty after a step back", token_bucket(1, SECOND, 2)).steps([
            admits(10 * S, 2, 0, 2 * S),
            // Full at 12 s is out of reach from 9 s: the refused call moves it to 11 s.
            refuses(9 * S, 1, 0, S, 2 * S),
            admits(10 * S, 1, 0, 2 * S),
            // A peek moves nothing: the bucket is full at 12 s.
            peek_refused(9_500_000, 0, S, 2 * S),
            peek_refused(10_500_000, 0, 500_000, 1_500_000),
            // Nor does a cost that never fits, while the state is within reach.
            never(10_100_000, 3, 0, 1_900_000),
            peek(11 * S, 1, S),
        ]),
        case("a refund by receipt is limited to what time has not refilled", token_bucket(1, SECOND, 3))
            .steps([
                admits(0, 2, 1, 2 * S),
                admits(0, 1, 0, 3 * S),
                // The first charge is refilled at 2 s, half of it at 1 s.
                refund_of(S, 0),
                peek(S, 2, S),
                refund_of(S, 1),
                peek(S, 3, 0),
                // A second later all of it is refilled, whatever else is missing.
                admits(20 * S, 1, 2, S),
                admits(20_500_000, 2, 0, 2_500_000),
                refund_of(21 * S, 2),
                peek(21 * S, 1, 2 * S),
            ]),
        case("a refund without a receipt fills the bucket at most", token_bucket(1, SECOND, 3)).steps([
            refund(0, 1),
            peek(0, 3, 0),
            admits(10 * S, 3, 0, 3 * S),
            refund(10_500_000, 1),
            peek(10_500_000, 1, 1_500_000),
            refund(10_500_000, u64::MAX),
            peek(10_500_000, 3, 0),
            admits(10_500_000, 3, 0, 3 * S),
        ]),
    ]
}

fn sizes() -> Vec<Case> {
    let default = |rate: Rate, permits, period| {
        pair(TokenBucket::new(rate), Policy::bucket_for(permits, period, 1_000_000_000))
    };
    vec![
        case("a permit takes whole microseconds, rounded up", token_bucket(3, SECOND, 3)).steps([
            admits(0, 3, 0, 1_000_002),
            refuses(333_333, 1, 0, 1, 666_669),
            admits(333_334, 1, 0, 1_000_002),
        ]),
        case(
            "a burst given as a time keeps its fraction",
            token_bucket_for(2, SECOND, Duration::from_millis(750)),
        )
        .steps([
            admits(0, 1, 0, 500_000),
            refuses(249_999, 1, 0, 1, 250_001),
            admits(250_000, 1, 0, 750_000),
            never(250_000, 2, 0, 750_000),
        ]),
        case(
            "a burst given as a short time is one permit",
            token_bucket_for(1, SECOND, Duration::from_millis(10)),
        )
        .steps([admits(0, 1, 0, S), refuses(0, 1, 0, S, S), admits(S, 1, 0, S)]),
        case(
            "the default burst is one second of the rate",
            default(Rate::new(150, Duration::from_secs(60)), 150, 60_000_000_000),
        )
        .steps([
            admits(0, 2, 0, 800_000),
            refuses(0, 1, 0, 200_000, 800_000),
            admits(200_000, 1, 0, S),
            never(200_000, 3, 0, S),
        ]),
        case(
            "the default burst is at least one permit",
            default(Rate::new(1, Duration::from_secs(60)), 1, 60_000_000_000),
        )
        .steps([
            admits(0, 1, 0, 60 * S),
            refuses(59_999_999, 1, 0, 1, 1),
            admits(60 * S, 1, 0, 60 * S),
        ]),
        case("a large bucket stays exact", token_bucket(1_000_000, SECOND, 300_000_000_000)).steps([
            admits(1, 299_999_999_999, 1, 299_999_999_999),
            refuses(1, 3, 1, 2, 299_999_999_999),
            refuses(2, 3, 2, 1, 299_999_999_998),
            admits(3, 3, 0, 300_000_000_000),
            never(3, 300_000_000_001, 0, 300_000_000_000),
        ]),
        case("the slowest bucket stays exact", token_bucket(1, 3650 * 86_400 * SECOND, 1)).steps([
            admits(7, 1, 0, 315_360_000 * S),
            refuses(8, 1, 0, 315_359_999_999_999, 315_359_999_999_999),
            refuses(315_360_000 * S + 6, 1, 0, 1, 1),
            admits(315_360_000 * S + 7, 1, 0, 315_360_000 * S),
        ]),
    ]
}

fn meters() -> Vec<Case> {
    vec![
        case("a leaky bucket leaks continuously", leaky_bucket(4, 1, SECOND)).steps([
            admits(0, 3, 1, 3 * S),
            refuses(500_000, 2, 1, 500_000, 2_500_000),
            admits(S, 2, 0, 4 * S),
            refuses(S, 4, 0, 4 * S, 4 * S),
            never(S, 5, 0, 4 * S),
            peek(5 * S, 4, 0),
        ]),
        case(
            "a permit drains in whole microseconds, rounded up",
            draining_bucket(3, Duration::from_secs(10)),
        )
        .steps([
            admits(0, 1, 2, 3_333_334),
            admits(0, 2, 0, 10_000_002),
            refuses(0, 1, 0, 3_333_334, 10_000_002),
            refuses(3_333_333, 1, 0, 1, 6_666_669),
            admits(3_333_334, 1, 0, 10_000_002),
        ]),
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        case(
            "a refill comes at once, every period from the call that found the bucket full",
            interval_refill(2, 10 * SECOND, 5),
        )
        .steps([
            admits(3 * S, 4, 1, 20 * S),
            refuses(3 * S, 2, 1, 10 * S, 20 * S),
            refuses(12_999_999, 2, 1, 1, 10_000_001),
            admits(13 * S, 2, 1, 20 * S),
            peek(22_999_999, 1, 10_000_001),
            peek(23 * S, 3, 10 * S),
            peek(33 * S, 5, 0),
            admits(47 * S, 5, 0, 30 * S),
            refuses(56_999_999, 1, 0, 1, 20_000_001),
            refuses(57 * S, 3, 2, 10 * S, 20 * S),
            admits(57 * S, 1, 1, 20 * S),
            never(57 * S, 6, 1, 20 * S),
        ]),
        case("a step back restarts the refill period", interval_refill(2, 10 * SECOND, 5)).steps([
            admits(57 * S, 4, 1, 20 * S),
            peek(50 * S, 1, 20 * S),
            peek(66 * S, 1, 11 * S),
            // The refused call moves the refills to 60 s and 70 s.
            refuses(50 * S, 2, 1, 10 * S, 20 * S),
            peek(60 * S, 3, 10 * S),
        ]),
        case("a refund excludes what was refilled", interval_refill(1, 10 * SECOND, 3)).steps([
            admits(0, 2, 1, 20 * S),
            admits(5 * S, 1, 0, 25 * S),
            // One of the first charge's two permits is refilled at 10 s.
            refund_of(10 * S, 0),
            peek(10 * S, 2, 10 * S),
            refund_of(10 * S, 1),
            peek(10 * S, 3, 0),
            admits(40 * S, 3, 0, 30 * S),
            refund(41 * S, 1),
            peek(41 * S, 1, 19 * S),
            refund(41 * S, u64::MAX),
            peek(41 * S, 3, 0),
        ]),
    ]
}
