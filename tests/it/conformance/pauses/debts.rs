//! Buckets that owe, or get permits back, while they are paused.

use super::super::{Case, FOREVER, S, admits, case, pause, peek_refused, refund, refuses, settle, waits};
use super::{SECOND, of_each};
use crate::support::policies::{adjustable, borrowing};

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        of_each("pays a debt after a pause", 10, || {
            [
                admits(0, 1, 9, S),
                pause(0, 10 * S),
                settle(S, 0, 21),
                peek_refused(S, 0, 29 * S, 38 * S),
                refuses(10 * S, 1, 0, 20 * S, 29 * S),
                admits(30 * S, 1, 0, 10 * S),
            ]
        }),
        of_each("is not opened by calls that have used nothing", 10, || {
            [
                admits(0, 3, 7, 3 * S),
                admits(0, 7, 0, 10 * S),
                pause(0, 10 * S),
                settle(S, 1, 0),
                settle(S, 0, 0),
                peek_refused(S, 0, 10 * S, 19 * S),
                refuses(11 * S - 1, 1, 0, 1, 9 * S + 1),
                admits(11 * S, 1, 0, 10 * S),
            ]
        }),
        of_each("is not opened by permits that it gets back", 10, || {
            [
                pause(0, 10 * S),
                refund(S, 5),
                peek_refused(S, 0, 9 * S, 13 * S),
                refuses(10 * S - 1, 1, 0, 1, 4 * S + 1),
                admits(10 * S, 1, 5, 5 * S),
            ]
        }),
        vec![
            case("a bucket that lends lends once after a pause", borrowing(1, SECOND, Some(10))).steps([
                pause(0, 10 * S),
                refuses(0, 1, 0, 10 * S, 20 * S),
                waits(0, 12, FOREVER, 10 * S, 0, 32 * S),
                waits(0, 1, FOREVER, 22 * S, 0, 33 * S),
                refuses(10 * S, 1, 0, 13 * S, 23 * S),
            ]),
            case("a bucket that has lent lacks as much after a pause", borrowing(1, SECOND, Some(10))).steps(
                [
                    admits(0, 12, 0, 12 * S),
                    pause(S, 10 * S),
                    refuses(S, 1, 0, 11 * S, 21 * S),
                    admits(12 * S, 5, 0, 15 * S),
                ],
            ),
            case("a changing bucket lends once after a pause", adjustable::borrowing(1, SECOND, 10)).steps([
                pause(0, 10 * S),
                refuses(0, 1, 0, 10 * S, 20 * S),
                admits(10 * S, 5, 0, 15 * S),
                refuses(10 * S, 1, 0, 5 * S, 15 * S),
            ]),
        ],
    ];
    cases.into_iter().flatten().collect()
}
