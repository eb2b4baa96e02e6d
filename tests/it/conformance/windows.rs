//! Fixed windows, and sliding windows as exact logs and counters of sub-windows.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;

use super::{Case, S, Step, admits, case, case_of, never, peek, peek_refused, refund, refund_of, refuses};
use crate::support::policies::{calendar_window, fixed_window, sliding_window};

const TEN: Duration = Duration::from_secs(10);
const FIVE: Duration = Duration::from_secs(5);

pub(super) fn cases() -> Vec<Case> {
    [fixed(), calendars(), logs(), log_refunds(), counters()].into_iter().flatten().collect()
}

fn fixed() -> Vec<Case> {
    vec![
        case("a window opens with its first call", fixed_window(3, TEN, false)).steps([
            peek(0, 3, 0),
            admits(4 * S, 1, 2, 10 * S),
            admits(5 * S, 2, 0, 9 * S),
            refuses(5 * S, 1, 0, 9 * S, 9 * S),
            refuses(13_999_999, 1, 0, 1, 1),
            admits(14 * S, 1, 2, 10 * S),
            never(14 * S, 4, 2, 10 * S),
            never(14 * S, u64::MAX, 2, 10 * S),
            peek(24 * S, 3, 0),
            admits(30 * S, 1, 2, 10 * S),
        ]),
        case("an aligned window ends on a multiple of its period", fixed_window(3, TEN, true)).steps([
            admits(4 * S, 1, 2, 6 * S),
            admits(9_999_999, 2, 0, 1),
            refuses(9_999_999, 1, 0, 1, 1),
            admits(10 * S, 3, 0, 10 * S),
            refuses(10 * S, 1, 0, 10 * S, 10 * S),
        ]),
        // 1,700,000,000 s is 20 s after a whole minute.
        case("windows are aligned since the epoch", fixed_window(3, Duration::from_secs(60), true)).steps([
            admits(0, 3, 0, 40 * S),
            refuses(39_999_999, 1, 0, 1, 1),
            admits(40 * S, 1, 2, 60 * S),
        ]),
        case_of(
            "a window keeps its count when the limit changes",
            [fixed_window(3, TEN, false), fixed_window(5, TEN, false), fixed_window(2, TEN, false)],
        )
        .steps([
            admits(0, 3, 0, 10 * S),
            Step::UsePolicy(1),
            admits(S, 1, 1, 9 * S),
            Step::UsePolicy(2),
            refuses(2 * S, 1, 0, 8 * S, 8 * S),
            peek_refused(2 * S, 0, 8 * S, 8 * S),
            Step::UsePolicy(0),
            refuses(3 * S, 1, 0, 7 * S, 7 * S),
            admits(10 * S, 3, 0, 10 * S),
        ]),
        case(
            "the largest window stays exact",
            fixed_window(1_000_000_000_000, Duration::from_secs(3650 * 86_400), false),
        )
        .steps([
            admits(7, 999_999_999_999, 1, 315_360_000 * S),
            refuses(8, 2, 1, 315_359_999_999_999, 315_359_999_999_999),
            admits(315_360_000 * S + 6, 1, 0, 1),
            never(315_360_000 * S + 7, 1_000_000_000_001, 1_000_000_000_000, 0),
        ]),
        case("a window from the future keeps its count and starts now", fixed_window(3, TEN, false)).steps([
            admits(100 * S, 2, 1, 10 * S),
            peek(50 * S, 1, 10 * S),
            refuses(50 * S, 2, 1, 10 * S, 10 * S),
            peek(59_999_999, 1, 1),
            peek(60 * S, 3, 0),
        ]),
        case("an aligned window from the future moves to the present one", fixed_window(3, TEN, true)).steps(
            [
                admits(104 * S, 2, 1, 6 * S),
                refuses(57 * S, 2, 1, 3 * S, 3 * S),
                admits(58 * S, 1, 0, 2 * S),
                peek(60 * S, 3, 0),
            ],
        ),
        case("a charge is refunded while its window is open", fixed_window(3, TEN, false)).steps([
            admits(0, 2, 1, 10 * S),
            refund_of(9_999_999, 0),
            peek(9_999_999, 3, 0),
            admits(20 * S, 3, 0, 10 * S),
            admits(30 * S, 2, 1, 10 * S),
            refund_of(30 * S, 1),
            peek(30 * S, 1, 10 * S),
            refund(30 * S, 1),
            peek(30 * S, 2, 10 * S),
            refund(30 * S, u64::MAX),
            peek(30 * S, 3, 0),
            // A window that was moved is a new one.
            admits(50 * S, 2, 1, 10 * S),
            refuses(45 * S, 3, 1, 10 * S, 10 * S),
            refund_of(45 * S, 3),
            peek(45 * S, 1, 10 * S),
        ]),
    ]
}

/// Time 0 is 22:13:20 UTC on 14 November 2023, 46 minutes and 40 seconds before midnight in Berlin.
fn calendars() -> Vec<Case> {
    const DAY: i64 = 86_400 * S;
    let berlin = |period| calendar_window(3, period, "Europe/Berlin");
    vec![
        case("a day ends at midnight", berlin(CalendarPeriod::Day)).steps([
            peek(0, 3, 0),
            admits(0, 1, 2, 2800 * S),
            admits(2799 * S, 2, 0, S),
            refuses(2_799_999_999, 1, 0, 1, 1),
            never(2_799_999_999, 4, 0, 1),
            admits(2800 * S, 1, 2, DAY),
        ]),
        case("a month ends with its last day", berlin(CalendarPeriod::Month)).steps([
            admits(0, 3, 0, 16 * DAY + 2800 * S),
            refuses(16 * DAY, 1, 0, 2800 * S, 2800 * S),
            admits(16 * DAY + 2800 * S, 3, 0, 31 * DAY),
        ]),
        case_of(
            "a window keeps its end and its count in another zone and with another limit",
            [
                berlin(CalendarPeriod::Day),
                calendar_window(5, CalendarPeriod::Day, "UTC"),
                calendar_window(2, CalendarPeriod::Day, "Asia/Tokyo"),
            ],
        )
        .steps([
            admits(0, 3, 0, 2800 * S),
            Step::UsePolicy(1),
            admits(S, 1, 1, 2799 * S),
            Step::UsePolicy(2),
            refuses(2 * S, 1, 0, 2798 * S, 2798 * S),
            // The next one ends in Tokyo, at 15:00 UTC.
            admits(2800 * S, 1, 1, 16 * 3600 * S),
            Step::UsePolicy(0),
            admits(2801 * S, 2, 0, 16 * 3600 * S - S),
            refuses(2802 * S, 1, 0, 16 * 3600 * S - 2 * S, 16 * 3600 * S - 2 * S),
            // And then one in Berlin, which is not over at once: midnight there ended the one in Tokyo.
            admits(2800 * S + 16 * 3600 * S, 3, 0, 32 * 3600 * S),
        ]),
        case("the next days pay what one owes", berlin(CalendarPeriod::Day)).steps([
            admits(0, 1, 2, 2800 * S),
            Step::Settle { at: 0, nth: 0, used: 8 },
            refuses(S, 1, 0, 2799 * S + DAY, 2799 * S + 2 * DAY),
            refuses(2800 * S, 1, 0, DAY, 2 * DAY),
            admits(2800 * S + DAY, 1, 0, DAY),
            admits(2800 * S + 2 * DAY, 3, 0, DAY),
        ]),
        case("a day from the future keeps its count and ends today", berlin(CalendarPeriod::Day)).steps([
            admits(DAY, 2, 1, 2800 * S),
            refuses(0, 2, 1, 2800 * S, 2800 * S),
            admits(S, 1, 0, 2799 * S),
            peek(2800 * S, 3, 0),
        ]),
        case("a refund is for the day of the call", berlin(CalendarPeriod::Day)).steps([
            admits(0, 3, 0, 2800 * S),
            refund_of(S, 0),
            admits(2 * S, 2, 1, 2798 * S),
            admits(2800 * S, 2, 1, DAY),
            refund_of(2801 * S, 1),
            refuses(2802 * S, 2, 1, DAY - 2 * S, DAY - 2 * S),
        ]),
    ]
}

fn logs() -> Vec<Case> {
    vec![
        case("a charge counts for exactly a period", sliding_window(3, TEN, None)).steps([
            peek(0, 3, 0),
            admits(0, 1, 2, 10 * S),
            admits(4 * S, 2, 0, 10 * S),
            refuses(4 * S, 1, 0, 6 * S, 10 * S),
            refuses(4 * S, 2, 0, 10 * S, 10 * S),
            refuses(9_999_999, 1, 0, 1, 4_000_001),
            admits(10 * S, 1, 0, 10 * S),
            refuses(13_999_999, 2, 0, 1, 6_000_001),
            admits(14 * S, 2, 0, 10 * S),
            never(14 * S, 4, 0, 10 * S),
            never(14 * S, u64::MAX, 0, 10 * S),
            peek(24 * S, 3, 0),
        ]),
        case_of(
            "a log keeps its count when the limit changes",
            [sliding_window(4, TEN, None), sliding_window(2, TEN, None), sliding_window(6, TEN, None)],
        )
        .steps([
            admits(0, 1, 3, 10 * S),
            admits(S, 1, 2, 10 * S),
            admits(2 * S, 1, 1, 10 * S),
            admits(3 * S, 1, 0, 10 * S),
            Step::UsePolicy(1),
            // The count is 1 once the third charge has ended.
            refuses(4 * S, 1, 0, 8 * S, 9 * S),
            peek_refused(4 * S, 0, 8 * S, 9 * S),
            Step::UsePolicy(2),
            admits(4 * S, 2, 0, 10 * S),
            Step::UsePolicy(1),
            refuses(12_999_999, 1, 0, 1_000_001, 1_000_001),
            refuses(13 * S, 2, 0, S, S),
            admits(14 * S, 2, 0, 10 * S),
        ]),
        case("charges from the future are moved to now", sliding_window(3, TEN, None)).steps([
            admits(200 * S, 1, 2, 10 * S),
            admits(205 * S, 1, 1, 10 * S),
            peek(150 * S, 1, 10 * S),
            refuses(150 * S, 2, 1, 10 * S, 10 * S),
            peek(159_999_999, 1, 1),
            admits(159_999_999, 1, 0, 10 * S),
            peek(160 * S, 2, 9_999_999),
        ]),
        case("charges of the past stay when those from the future are moved", sliding_window(4, TEN, None))
            .steps([
                admits(0, 1, 3, 10 * S),
                admits(8 * S, 1, 2, 10 * S),
                admits(9 * S, 1, 1, 10 * S),
                admits(5 * S, 1, 0, 10 * S),
                peek_refused(9_999_999, 0, 1, 5_000_001),
                peek(10 * S, 1, 5 * S),
                peek(15 * S, 4, 0),
            ]),
    ]
}

fn log_refunds() -> Vec<Case> {
    vec![
        case("a log refunds a charge while it counts", sliding_window(3, TEN, None)).steps([
            admits(300 * S, 1, 2, 10 * S),
            admits(300 * S, 1, 1, 10 * S),
            admits(301 * S, 1, 0, 10 * S),
            refund_of(305 * S, 0),
            peek(305 * S, 1, 6 * S),
            refund_of(305 * S, 2),
            peek(305 * S, 2, 5 * S),
            refund(305 * S, 1),
            peek(305 * S, 3, 0),
            admits(500 * S, 1, 2, 10 * S),
            admits(505 * S, 1, 1, 10 * S),
            refund_of(510 * S, 3),
            peek(510 * S, 2, 5 * S),
        ]),
        case("a refund without a receipt takes the newest charges", sliding_window(3, TEN, None)).steps([
            admits(400 * S, 2, 1, 10 * S),
            admits(405 * S, 1, 0, 10 * S),
            refund(406 * S, 2),
            peek(406 * S, 2, 4 * S),
            refund(406 * S, u64::MAX),
            peek(406 * S, 3, 0),
        ]),
        case("a charge that was moved cannot be refunded by receipt", sliding_window(3, TEN, None)).steps([
            admits(600 * S, 1, 2, 10 * S),
            refuses(590 * S, 3, 2, 10 * S, 10 * S),
            refund_of(590 * S, 0),
            peek(590 * S, 2, 10 * S),
            // One from the future that was not moved can.
            admits(700 * S, 1, 2, 10 * S),
            refund_of(690 * S, 1),
            peek(690 * S, 3, 0),
        ]),
    ]
}

fn counters() -> Vec<Case> {
    vec![
        case("a sub-window counts until a period after its end", sliding_window(3, TEN, Some(FIVE))).steps([
            admits(S, 1, 2, 14 * S),
            admits(7 * S, 2, 0, 13 * S),
            refuses(7 * S, 1, 0, 8 * S, 13 * S),
            refuses(14_999_999, 1, 0, 1, 5_000_001),
            admits(15 * S, 1, 0, 15 * S),
            admits(104_999_999, 1, 2, 10_000_001),
            admits(105 * S, 1, 1, 15 * S),
            refuses(114_999_999, 2, 1, 1, 5_000_001),
            admits(115 * S, 2, 0, 15 * S),
            never(115 * S, 4, 0, 15 * S),
        ]),
        case("sub-windows from the future are moved to the present one", sliding_window(3, TEN, Some(FIVE)))
            .steps([
                admits(203 * S, 2, 1, 12 * S),
                // A step back within one sub-window changes nothing.
                refuses(201 * S, 2, 1, 14 * S, 14 * S),
                peek(214_999_999, 1, 1),
                refuses(198 * S, 2, 1, 12 * S, 12 * S),
                peek(209_999_999, 1, 1),
                peek(210 * S, 3, 0),
            ]),
        case("a counter refunds a charge while its sub-window counts", sliding_window(3, TEN, Some(FIVE)))
            .steps([
                admits(S, 1, 2, 14 * S),
                admits(2 * S, 1, 1, 13 * S),
                admits(6 * S, 1, 0, 14 * S),
                refund_of(14_999_999, 0),
                peek(14_999_999, 1, 5_000_001),
                refund_of(15 * S, 1),
                peek(15 * S, 2, 5 * S),
                refund(15 * S, 1),
                peek(15 * S, 3, 0),
            ]),
    ]
}

/// A counter that admits more than 2^50 permits in total, where the script's running totals wrap around.
pub(super) fn long_lived_counter() -> Case {
    const HALF: u64 = 500_000_000_000;
    let mut steps = vec![admits(0, HALF, HALF.into(), 15 * S)];
    for tens in 1..2300 {
        let now = tens * 10 * S;
        // Far from the boundary, one charge is enough.
        if tens < 2200 {
            steps.push(admits(now, HALF, 0, 15 * S));
            continue;
        }
        // This charge makes the total 2^50 + 1, so that the refund crosses the boundary backwards.
        let part = if tens == 2251 { (1 << 50) + 1 - 2251 * HALF } else { 4 };
        steps.extend([
            admits(now, part, (HALF - part).into(), 15 * S),
            refund(now, 3),
            peek(now, (HALF - part + 3).into(), 15 * S),
            admits(now, 3, (HALF - part).into(), 15 * S),
            admits(now, HALF - part, 0, 15 * S),
            refuses(now, 1, 0, 5 * S, 15 * S),
        ]);
    }
    case("a counter of more than 2^50 permits", sliding_window(2 * HALF, TEN, Some(FIVE))).steps(steps)
}
