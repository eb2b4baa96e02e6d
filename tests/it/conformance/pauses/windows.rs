//! Windows that are paused: they keep their counts and ends.

use super::super::{
    Case, FOREVER, S, Step, admits, case, never, pause, peek_refused, refuses, settle, within,
};
use super::{SECOND, TEN};
use crate::support::policies::{fixed_window, sliding_window};

pub(super) fn cases() -> Vec<Case> {
    vec![
        case("a window keeps its count and its end in a pause", fixed_window(10, TEN, false)).steps([
            admits(0, 4, 6, 10 * S),
            pause(2 * S, 3 * S),
            refuses(2 * S, 1, 0, 3 * S, 8 * S),
            refuses(2 * S, 7, 0, 8 * S, 8 * S),
            within(FOREVER, 0, refuses(2 * S, 1, 0, 3 * S, 8 * S)),
            never(2 * S, 11, 0, 8 * S),
            peek_refused(3 * S, 0, 2 * S, 7 * S),
            refuses(5 * S - 1, 1, 0, 1, 5 * S + 1),
            admits(5 * S, 5, 1, 5 * S),
            admits(6 * S, 1, 0, 4 * S),
            pause(6 * S, 20 * S),
            pause(7 * S, 2 * S),
            refuses(7 * S, 10, 0, 19 * S, 19 * S),
            admits(26 * S, 10, 0, 10 * S),
        ]),
        case("a pause ends within another aligned window", fixed_window(10, TEN, true)).steps([
            admits(4 * S, 4, 6, 6 * S),
            pause(5 * S, 7 * S),
            refuses(5 * S, 1, 0, 7 * S, 7 * S),
            admits(12 * S, 10, 0, 8 * S),
        ]),
        case("a window that nobody called is paused", fixed_window(10, TEN, false)).steps([
            pause(0, 5 * S),
            refuses(0, 10, 0, 5 * S, 5 * S),
            never(0, 11, 0, 5 * S),
            admits(5 * S, 10, 0, 10 * S),
            pause(5 * S, S),
            Step::Reset,
            admits(5 * S, 10, 0, 10 * S),
        ]),
        case("a window that is paused owes", fixed_window(10, TEN, false)).steps([
            admits(0, 4, 6, 10 * S),
            pause(S, 3 * S),
            settle(2 * S, 0, 12),
            peek_refused(2 * S, 0, 8 * S, 18 * S),
            refuses(5 * S, 1, 0, 5 * S, 15 * S),
            admits(10 * S, 8, 0, 10 * S),
        ]),
        case("a log keeps its charges in a pause", sliding_window(3, TEN, None)).steps([
            admits(0, 2, 1, 10 * S),
            pause(S, 5 * S),
            refuses(S, 1, 0, 5 * S, 9 * S),
            refuses(S, 2, 0, 9 * S, 9 * S),
            never(S, 4, 0, 9 * S),
            peek_refused(2 * S, 0, 4 * S, 8 * S),
            admits(6 * S, 1, 0, 10 * S),
            refuses(6 * S, 1, 0, 4 * S, 10 * S),
            pause(7 * S, 4 * S),
            pause(8 * S, S),
            refuses(8 * S, 2, 0, 3 * S, 8 * S),
            refuses(8 * S, 3, 0, 8 * S, 8 * S),
            pause(9 * S, 20 * S),
            refuses(9 * S, 3, 0, 20 * S, 20 * S),
            admits(29 * S, 3, 0, 10 * S),
        ]),
        case("a counter keeps its charges in a pause", sliding_window(3, TEN, Some(5 * SECOND))).steps([
            admits(0, 2, 1, 15 * S),
            pause(S, 5 * S),
            refuses(S, 1, 0, 5 * S, 14 * S),
            admits(6 * S, 1, 0, 14 * S),
            pause(7 * S, 8 * S),
            refuses(7 * S, 2, 0, 8 * S, 13 * S),
            admits(15 * S, 2, 0, 15 * S),
        ]),
        case("a log that nobody called is paused", sliding_window(3, TEN, None)).steps([
            pause(0, 5 * S),
            refuses(0, 3, 0, 5 * S, 5 * S),
            pause(2 * S, 6 * S),
            peek_refused(2 * S, 0, 6 * S, 6 * S),
            admits(8 * S, 3, 0, 10 * S),
            pause(8 * S, S),
            Step::Reset,
            admits(8 * S, 3, 0, 10 * S),
        ]),
        case("a log that is paused counts a debt from the end of the pause", sliding_window(3, TEN, None))
            .steps([
                admits(0, 1, 2, 10 * S),
                pause(S, 3 * S),
                settle(2 * S, 0, 3),
                peek_refused(2 * S, 0, 8 * S, 12 * S),
                refuses(5 * S, 1, 0, 5 * S, 9 * S),
                admits(10 * S, 1, 0, 10 * S),
                admits(14 * S, 2, 0, 10 * S),
            ]),
    ]
}
