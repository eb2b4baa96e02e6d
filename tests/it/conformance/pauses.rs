//! Keys that are paused: no call starts before the end, and what is left of their policies then.

mod beside;
mod stored;

use std::time::Duration;

use super::{
    Case, FOREVER, S, Step, admits, case, never, pause, peek, peek_refused, refund, refund_of, refuses,
    settle, times_out, waits, within,
};
use crate::support::policies::{
    Pair, adjustable, borrowing, fixed_window, interval_refill, leaky_bucket, queue, sliding_window,
    token_bucket, warming_up,
};

const SECOND: Duration = Duration::from_secs(1);
const TEN: Duration = Duration::from_secs(10);

pub(super) fn cases() -> Vec<Case> {
    let cases = [buckets(), debts(), lines(), intervals(), warm_ups(), windows(), receipts(), clocks()];
    cases.into_iter().flatten().collect()
}

/// A bucket that gets a permit a second, in each of its forms.
fn each_bucket(burst: u64) -> [(&'static str, Option<Pair>); 4] {
    [
        ("a bucket", token_bucket(1, SECOND, burst)),
        ("a meter", leaky_bucket(burst, 1, SECOND)),
        ("a changing bucket", adjustable::token_bucket(1, SECOND, burst)),
        ("a settled bucket", adjustable::settled(1, SECOND, burst, false)),
    ]
}

/// The same case of each bucket. Names are keys.
fn of_each<const N: usize>(name: &str, burst: u64, steps: impl Fn() -> [Step; N]) -> Vec<Case> {
    let of = |(bucket, pair): (&str, Option<Pair>)| case(format!("{bucket} {name}"), pair).steps(steps());
    each_bucket(burst).into_iter().map(of).collect()
}

fn buckets() -> Vec<Case> {
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

fn debts() -> Vec<Case> {
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

fn lines() -> Vec<Case> {
    vec![
        // One call leaves at once, while two wait for a second each, and none for more than 2 s.
        case("a queue goes on after a pause", queue(2, 1, SECOND)).steps([
            pause(0, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            times_out(0, 1, FOREVER, 0, S, 3 * S),
            waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
            times_out(S, 1, S, 0, 2 * S, 3 * S),
            waits(2 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            pause(3 * S, 10 * S),
            // One starts at 13 s, and one at 14 s.
            refuses(3 * S, 1, 0, 12 * S, 12 * S),
            times_out(12 * S, 1, FOREVER, 0, S, 3 * S),
            waits(13 * S, 1, FOREVER, 2 * S, 0, 3 * S),
            pause(20 * S, 60 * S),
            times_out(20 * S, 1, FOREVER, 0, 58 * S, 60 * S),
        ]),
        case("calls of a changing queue wait for the end of a pause", adjustable::queue(2, 1, SECOND)).steps(
            [
                pause(0, 2 * S),
                waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
                waits(0, 1, FOREVER, 3 * S, 0, 4 * S),
                waits(0, 1, FOREVER, 4 * S, 0, 5 * S),
                times_out(0, 1, FOREVER, 0, 3 * S, 5 * S),
                times_out(S, 1, S, 0, 3 * S, 4 * S),
                times_out(2 * S, 1, FOREVER, 0, S, 3 * S),
                waits(3 * S, 1, FOREVER, 2 * S, 0, 3 * S),
                pause(20 * S, 60 * S),
                waits(20 * S, 1, FOREVER, 60 * S, 0, 61 * S),
                times_out(20 * S, 1, 50 * S, 0, 11 * S, 61 * S),
            ],
        ),
        case("the last call leaves a queue that is paused", queue(4, 1, SECOND)).steps([
            pause(0, 2 * S),
            waits(0, 1, FOREVER, 2 * S, 0, 3 * S),
            waits(0, 1, FOREVER, 3 * S, 0, 4 * S),
            refund_of(S, 0),
            times_out(S, 1, 3 * S - 1, 0, 1, 3 * S),
            refund_of(S, 1),
            waits(S, 1, FOREVER, 2 * S, 0, 3 * S),
        ]),
    ]
}

/// Of a bucket of five permits that gets two every ten seconds.
fn of_intervals() -> [Step; 17] {
    [
        admits(0, 4, 1, 20 * S),
        // The refills come at 40 s and 50 s.
        pause(4 * S, 30 * S),
        refuses(4 * S, 1, 0, 30 * S, 46 * S),
        refuses(4 * S, 2, 0, 36 * S, 46 * S),
        refuses(34 * S - 1, 1, 0, 1, 16 * S + 1),
        admits(34 * S, 1, 0, 26 * S),
        refuses(34 * S, 1, 0, 6 * S, 26 * S),
        peek(40 * S, 2, 20 * S),
        // The one at 50 s comes at 60 s.
        pause(45 * S, 10 * S),
        waits(45 * S, 1, FOREVER, 10 * S, 0, 35 * S),
        waits(45 * S, 1, FOREVER, 15 * S, 0, 35 * S),
        times_out(45 * S, 2, 25 * S - 1, 0, 25 * S, 35 * S),
        peek_refused(55 * S, 0, 5 * S, 25 * S),
        Step::Reset,
        pause(55 * S, 10 * S),
        refuses(55 * S, 1, 0, 10 * S, 30 * S),
        admits(65 * S, 1, 0, 30 * S),
    ]
}

fn intervals() -> Vec<Case> {
    vec![
        case("a refill comes later by a pause", interval_refill(2, TEN, 5)).steps(of_intervals()),
        case("a changing refill comes later by a pause", adjustable::interval_refill(2, TEN, 5))
            .steps(of_intervals()),
    ]
}

/// Of a bucket with a permit a second once it is warm, of which the first takes 2.5 s when it is cold, and the second 1.5 s.
fn of_warm_up() -> [Step; 11] {
    [
        admits(0, 1, 0, 3_500_000),
        admits(2_500_000, 1, 0, 3_500_000),
        pause(3 * S, 10 * S),
        refuses(3 * S, 1, 0, 11 * S, 11 * S),
        admits(14 * S, 1, 0, 3_500_000),
        Step::Reset,
        pause(14 * S, 10 * S),
        refuses(14 * S, 1, 0, 10 * S, 10 * S),
        waits(14 * S, 1, FOREVER, 10 * S, 0, 13_500_000),
        waits(14 * S, 1, FOREVER, 12_500_000, 0, 16 * S),
        refuses(24 * S, 1, 0, 4 * S, 6 * S),
    ]
}

fn warm_ups() -> Vec<Case> {
    let four = 4 * SECOND;
    vec![
        case("a bucket that warms up is cold after a pause", warming_up(1, SECOND, four)).steps(of_warm_up()),
        case(
            "a bucket with changing numbers that warms up is cold after a pause",
            adjustable::warming_up(1, SECOND, four),
        )
        .steps(of_warm_up()),
    ]
}

fn windows() -> Vec<Case> {
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
