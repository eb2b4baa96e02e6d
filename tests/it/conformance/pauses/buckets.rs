//! Buckets that are paused: their time stands still.

use super::super::{
    Case, FOREVER, S, Step, admits, never, pause, peek, peek_refused, refuses, times_out, waits, within,
};
use super::of_each;

pub(super) fn cases() -> Vec<Case> {
    let cases = [
        of_each("that was full has one permit after a pause", 10, || {
            [
                admits(0, 1, 9, S),
                pause(2 * S, 30 * S),
                refuses(2 * S, 1, 0, 30 * S, 39 * S),
                refuses(2 * S, 2, 0, 31 * S, 39 * S),
                never(2 * S, 11, 0, 39 * S),
                peek_refused(10 * S, 0, 22 * S, 31 * S),
                refuses(32 * S - 1, 1, 0, 1, 9 * S + 1),
                admits(32 * S, 1, 0, 10 * S),
                refuses(32 * S, 1, 0, S, 10 * S),
                admits(33 * S, 1, 0, 10 * S),
                // Nothing of the pause is left.
                admits(43 * S, 10, 0, 10 * S),
            ]
        }),
        of_each("that nobody called has one permit after a pause", 4, || {
            [
                pause(0, 10 * S),
                peek_refused(0, 0, 10 * S, 13 * S),
                refuses(5 * S, 4, 0, 8 * S, 8 * S),
                peek(10 * S, 1, 3 * S),
                admits(11 * S, 2, 0, 4 * S),
            ]
        }),
        of_each("that lacks more than all but a permit still does after a pause", 4, || {
            [
                admits(0, 4, 0, 4 * S),
                pause(S / 2, 10 * S),
                refuses(S / 2, 1, 0, 10_500_000, 13_500_000),
                peek_refused(10_500_000, 0, S / 2, 3_500_000),
                refuses(11 * S - 1, 1, 0, 1, 3 * S + 1),
                admits(11 * S, 1, 0, 4 * S),
            ]
        }),
        of_each("is paused until the end of the longest pause", 3, || {
            [
                pause(0, 10 * S),
                pause(2 * S, 3 * S),
                peek_refused(2 * S, 0, 8 * S, 10 * S),
                pause(2 * S, 8 * S),
                peek_refused(2 * S, 0, 8 * S, 10 * S),
                pause(4 * S, 20 * S),
                peek_refused(4 * S, 0, 20 * S, 22 * S),
                refuses(24 * S - 1, 1, 0, 1, 2 * S + 1),
                admits(24 * S, 1, 0, 3 * S),
                // It had two permits again.
                pause(26 * S, S),
                refuses(26 * S, 1, 0, S, 3 * S),
                admits(27 * S, 1, 0, 3 * S),
            ]
        }),
        of_each("is not paused for no time", 3, || {
            [pause(0, 0), peek(0, 3, 0), admits(0, 2, 1, 2 * S), pause(S, 0), admits(S, 2, 0, 3 * S)]
        }),
        of_each("is paused for a microsecond", 3, || {
            [pause(0, 1), peek_refused(0, 0, 1, 2 * S + 1), admits(1, 1, 0, 3 * S)]
        }),
        of_each("that is reset is not paused", 3, || {
            [
                pause(0, 10 * S),
                Step::Reset,
                admits(S, 3, 0, 3 * S),
                pause(S, S),
                refuses(S, 1, 0, 2 * S, 4 * S),
            ]
        }),
        of_each("gives slots after the end of a pause to calls that wait", 2, || {
            [
                pause(0, 10 * S),
                waits(0, 1, FOREVER, 10 * S, 0, 12 * S),
                waits(0, 1, FOREVER, 11 * S, 0, 13 * S),
                times_out(S, 1, 11 * S - 1, 0, 11 * S, 12 * S),
                within(FOREVER, 0, never(S, 3, 0, 12 * S)),
                waits(S, 1, 11 * S, 11 * S, 0, 13 * S),
                refuses(10 * S, 1, 0, 3 * S, 4 * S),
                waits(11 * S, 1, 2 * S, 2 * S, 0, 4 * S),
            ]
        }),
        of_each("moves the slots of calls that wait by a pause", 2, || {
            [
                admits(0, 2, 0, 2 * S),
                waits(0, 1, FOREVER, S, 0, 3 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 4 * S),
                // The second call starts at 12 s.
                pause(S, 10 * S),
                refuses(S, 1, 0, 12 * S, 13 * S),
                waits(S, 1, FOREVER, 12 * S, 0, 14 * S),
                pause(5 * S, 16 * S),
                waits(5 * S, 1, FOREVER, 19 * S, 0, 21 * S),
            ]
        }),
    ];
    cases.into_iter().flatten().collect()
}
