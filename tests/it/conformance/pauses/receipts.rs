//! Receipts from before and after a pause, and clocks that step back in one.

use super::super::{
    Case, FOREVER, S, admits, case, pause, peek, peek_refused, refund, refund_of, refuses, waits,
};
use super::{SECOND, TEN, of_each};
use crate::support::policies::{fixed_window, interval_refill, sliding_window, warming_up};

pub(super) fn cases() -> Vec<Case> {
    [receipts(), clocks()].into_iter().flatten().collect()
}

fn receipts() -> Vec<Case> {
    let cases = [
        of_each("gives nothing for receipts from before a pause", 10, || {
            [
                admits(0, 4, 6, 4 * S),
                admits(0, 2, 4, 6 * S),
                pause(0, 10 * S),
                refund_of(0, 0),
                peek_refused(0, 0, 10 * S, 19 * S),
                refund_of(10 * S, 1),
                // Its own receipt is good.
                admits(10 * S, 1, 0, 10 * S),
                refund_of(10 * S, 2),
                peek(10 * S, 1, 9 * S),
                // One that was given in a pause is.
                pause(20 * S, 5 * S),
                waits(20 * S, 1, FOREVER, 5 * S, 0, 15 * S),
                refund_of(21 * S, 3),
                refuses(21 * S, 1, 0, 4 * S, 13 * S),
                waits(21 * S, 1, FOREVER, 4 * S, 0, 14 * S),
                refund_of(24 * S, 2),
                pause(24 * S, 2 * S),
                refund_of(24 * S, 4),
                peek_refused(24 * S, 0, 3 * S, 12 * S),
            ]
        }),
        of_each("that permits have filled gives nothing for receipts from before a pause", 10, || {
            [
                admits(0, 4, 6, 4 * S),
                refund(0, 4),
                peek(0, 10, 0),
                pause(0, S),
                refund_of(S, 0),
                peek(S, 1, 9 * S),
            ]
        }),
        vec![
            case("refills give nothing for receipts from before a pause", interval_refill(2, TEN, 5)).steps(
                [
                    admits(0, 5, 0, 30 * S),
                    pause(S, 10 * S),
                    refund_of(S, 0),
                    peek_refused(S, 0, 19 * S, 39 * S),
                    admits(20 * S, 2, 0, 30 * S),
                    refund_of(20 * S, 1),
                    peek(20 * S, 2, 20 * S),
                ],
            ),
            case(
                "a bucket that warms up gives nothing for receipts from before a pause",
                warming_up(1, SECOND, 4 * SECOND),
            )
            .steps([
                admits(0, 1, 0, 3_500_000),
                pause(0, 10 * S),
                refund_of(0, 0),
                peek_refused(0, 0, 12_500_000, 12_500_000),
                waits(0, 1, FOREVER, 12_500_000, 0, 16 * S),
                refund_of(S, 1),
                peek_refused(S, 0, 11_500_000, 11_500_000),
            ]),
            case("a window takes receipts from before a pause", fixed_window(10, TEN, false)).steps([
                admits(0, 4, 6, 10 * S),
                admits(0, 2, 4, 10 * S),
                pause(S, 3 * S),
                refund_of(2 * S, 1),
                refuses(2 * S, 7, 0, 8 * S, 8 * S),
                refund_of(2 * S, 0),
                peek_refused(2 * S, 0, 2 * S, 2 * S),
                admits(4 * S, 10, 0, 10 * S),
            ]),
            case("a log takes receipts from before a pause", sliding_window(3, TEN, None)).steps([
                admits(0, 2, 1, 10 * S),
                pause(S, 3 * S),
                refund_of(2 * S, 0),
                peek_refused(2 * S, 0, 2 * S, 2 * S),
                admits(4 * S, 3, 0, 10 * S),
            ]),
            case("a log is free once all is given back after a pause", sliding_window(3, TEN, None)).steps([
                admits(0, 2, 1, 10 * S),
                pause(S, 3 * S),
                refund_of(5 * S, 0),
                peek(5 * S, 3, 0),
                admits(6 * S, 3, 0, 10 * S),
            ]),
            case("a log gives back the older of two charges in a pause", sliding_window(3, TEN, None)).steps(
                [
                    admits(0, 1, 2, 10 * S),
                    admits(S, 2, 0, 10 * S),
                    pause(2 * S, 3 * S),
                    refund_of(2 * S, 0),
                    refuses(2 * S, 2, 0, 9 * S, 9 * S),
                    refund(2 * S, 1),
                    refuses(2 * S, 2, 0, 3 * S, 9 * S),
                    admits(5 * S, 2, 0, 10 * S),
                ],
            ),
        ],
    ];
    cases.into_iter().flatten().collect()
}

fn clocks() -> Vec<Case> {
    let cases = [
        of_each("is paused as long as before when the clock steps back", 2, || {
            [
                admits(100 * S, 2, 0, 2 * S),
                pause(100 * S, 10 * S),
                refuses(98 * S, 1, 0, 11 * S, 12 * S),
                peek_refused(50 * S, 0, 11 * S, 12 * S),
                refuses(50 * S, 1, 0, 11 * S, 12 * S),
                refuses(52 * S, 1, 0, 9 * S, 10 * S),
                refuses(61 * S - 1, 1, 0, 1, S + 1),
                admits(61 * S, 1, 0, 2 * S),
            ]
        }),
        of_each("is not paused again when the clock steps back after a pause", 2, || {
            [
                pause(100 * S, 10 * S),
                admits(110 * S, 1, 0, 2 * S),
                refuses(105 * S, 1, 0, S, 2 * S),
                admits(106 * S, 1, 0, 2 * S),
            ]
        }),
        vec![
            case(
                "a window is paused as long as before when the clock steps back",
                fixed_window(2, TEN, false),
            )
            .steps([
                admits(100 * S, 2, 0, 10 * S),
                pause(101 * S, 2 * S),
                refuses(50 * S, 1, 0, 12 * S, 12 * S),
                refuses(60 * S, 1, 0, 2 * S, 2 * S),
                admits(62 * S, 2, 0, 10 * S),
            ]),
            case("a log is paused as long as before when the clock steps back", sliding_window(2, TEN, None))
                .steps([
                    admits(100 * S, 2, 0, 10 * S),
                    pause(101 * S, 2 * S),
                    refuses(50 * S, 1, 0, 12 * S, 12 * S),
                    refuses(60 * S, 1, 0, 2 * S, 2 * S),
                    admits(62 * S, 2, 0, 10 * S),
                ]),
            case(
                "an empty log is paused as long as before when the clock steps back",
                sliding_window(2, TEN, None),
            )
            .steps([
                pause(100 * S, 10 * S),
                refuses(50 * S, 1, 0, 10 * S, 10 * S),
                refuses(55 * S, 1, 0, 5 * S, 5 * S),
                admits(60 * S, 1, 1, 10 * S),
            ]),
        ],
    ];
    cases.into_iter().flatten().collect()
}
