//! Numbers that are known at compile time. An invalid one is a compile error where it is written.

use std::time::Duration;

use crate::base::calendar::{Calendar, CalendarPeriod, Zone};
use crate::base::invalid_policy::InvalidPolicy;
use crate::base::rate::Rate;
use crate::base::units;
use crate::decide::request::max_wait;
use crate::policy::numbers::{cost_of, count_of, rate_of};
use crate::policy::{FixedWindow, LeaseSize, NotifyAt, Policy, Slack};

const SECOND: Duration = Duration::from_secs(1);

/// Returns a count of permits.
#[track_caller]
#[must_use]
pub const fn count(argument: &'static str, value: i128) -> u64 {
    let count = valid(argument, count_of(argument, value));
    valid(argument, FixedWindow::new(count, SECOND).check());
    count
}

/// Returns the permits of one call, which may be none.
#[track_caller]
#[must_use]
pub const fn cost(argument: &'static str, value: i128) -> u64 {
    valid(argument, cost_of(argument, value))
}

/// Returns the estimate of what a call will use. One of 0 needs a free permit all the same, or no debt would ever refuse it.
#[track_caller]
#[must_use]
pub const fn estimate(argument: &'static str, value: i128) -> u64 {
    match cost(argument, value) {
        0 => 1,
        cost => cost,
    }
}

/// Returns permits per second.
#[track_caller]
#[must_use]
pub const fn rate_int(argument: &'static str, value: i128) -> Rate {
    valid(argument, rate_of(argument, value))
}

/// Returns permits per second.
#[track_caller]
#[must_use]
pub const fn rate_float(argument: &'static str, value: f64) -> Rate {
    valid(argument, Rate::from_per_second(value))
}

/// Parses a rate such as `"100/min"`.
#[track_caller]
#[must_use]
pub const fn rate_str(argument: &'static str, value: &str) -> Rate {
    valid(argument, Rate::parse(value))
}

/// Returns a duration of whole seconds.
#[track_caller]
#[must_use]
pub const fn seconds(argument: &'static str, value: i128) -> Duration {
    let seconds = valid(argument, count_of(argument, value));
    period(argument, Duration::from_secs(seconds))
}

/// Parses a duration with units, such as `"1h30m"`.
#[track_caller]
#[must_use]
pub const fn duration(argument: &'static str, value: &str) -> Duration {
    match units::parse_duration(value) {
        Ok(duration) => period(argument, duration),
        Err(problem) => fail(&["`", argument, "` ", problem]),
    }
}

/// Returns the microseconds of penalties, which last a day at most if the windows of the policy are those of a calendar: the store is
/// told of few windows at a time.
#[track_caller]
#[must_use]
pub const fn penalty<const N: usize>(steps: [Duration; N], is_calendar: bool) -> [u64; N] {
    const DAY: u64 = 86_400 * 1_000_000;
    const LONGEST: u64 = 365 * DAY;
    const MOST: usize = 32;
    if N > MOST {
        fail(&["`penalty` has more than 32 steps; the last one repeats, so fewer will do"]);
    }
    let (mut all, mut i) = ([0; N], 0);
    while i < N {
        all[i] = steps[i].as_micros() as u64;
        if is_calendar && all[i] > DAY {
            fail(&["`penalty` has a step of more than a day, which a window of a calendar cannot have"]);
        }
        if all[i] > LONGEST {
            fail(&["`penalty` has a step of more than 365 days"]);
        }
        if i > 0 && all[i] < all[i - 1] {
            fail(&[
                "`penalty` has a step that is shorter than the one before it; write the shortest one first",
            ]);
        }
        i += 1;
    }
    all
}

/// Returns the period of a calendar.
#[track_caller]
#[must_use]
pub const fn calendar_period(period: &str) -> CalendarPeriod {
    match CalendarPeriod::of_attribute(period) {
        Ok(period) => period,
        Err(problem) => fail(&["`period` ", problem]),
    }
}

/// Returns a policy whose windows are those of a calendar.
#[must_use]
pub const fn calendar_window(limit: u64, period: CalendarPeriod, zone: Zone) -> FixedWindow {
    FixedWindow::of_calendar(limit, Calendar::new(period, zone))
}

/// Returns a time zone, whose name is checked before the first call is decided.
#[must_use]
pub const fn zone(_argument: &'static str, name: &'static str) -> Zone {
    Zone::unchecked(name)
}

#[track_caller]
const fn period(argument: &'static str, period: Duration) -> Duration {
    valid(argument, FixedWindow::new(1, period).check());
    period
}

/// Parses a maximum wait: `"200ms"` or `"forever"`.
#[track_caller]
#[must_use]
pub const fn timeout(argument: &'static str, value: &str) -> Duration {
    match units::parse_timeout(value) {
        Ok(timeout) => timeout,
        Err(problem) => fail(&["`", argument, "` ", problem]),
    }
}

/// Returns the share of a limit at which observers are notified of a key.
#[track_caller]
#[must_use]
pub const fn notify_at(argument: &'static str, share: f64) -> NotifyAt {
    valid(argument, NotifyAt::new(share))
}

/// Returns the size of leases that exceed a bucket by at most this share of its burst.
#[track_caller]
#[must_use]
pub const fn slack(argument: &'static str, share: &str) -> LeaseSize {
    LeaseSize::Slack(valid(argument, Slack::parse(share)))
}

/// Returns the microseconds of a maximum wait.
#[must_use]
pub const fn wait(timeout: Duration) -> u64 {
    max_wait(timeout)
}

/// Stops compilation if the policy is invalid because of this argument.
#[track_caller]
pub const fn check(policy: &Policy, argument: &str) {
    if let Err(invalid) = policy.check()
        && same(invalid.argument(), argument)
    {
        fail(&["`", argument, "` ", invalid.problem()]);
    }
}

/// Stops compilation if an argument is more permits than the policy can ever admit.
#[track_caller]
pub const fn check_permits(policy: &Policy, argument: &str, permits: u64) {
    // An invalid policy is reported by `check`, at the number that is wrong.
    let Ok(spec) = policy.spec() else { return };
    let Some(max) = spec.max_cost() else { return };
    if permits > max {
        let (digits, start) = digits(max);
        let Ok(max) = std::str::from_utf8(digits.split_at(start).1) else { return };
        fail(&["`", argument, "` is more than the policy can ever admit; write at most ", max]);
    }
}

/// Returns the number in ASCII, and the index of its first digit.
const fn digits(mut number: u64) -> ([u8; 20], usize) {
    let (mut text, mut start) = ([b'0'; 20], 20);
    while number > 0 || start == 20 {
        start -= 1;
        text[start] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    (text, start)
}

#[track_caller]
const fn valid<T: Copy>(argument: &str, checked: Result<T, InvalidPolicy>) -> T {
    match checked {
        Ok(value) => value,
        Err(invalid) => fail(&["`", argument, "` ", invalid.problem()]),
    }
}

/// Stops compilation with these pieces as one message: a panic in a constant cannot format several.
#[track_caller]
const fn fail(pieces: &[&str]) -> ! {
    let mut text = [b' '; 400];
    let (mut piece, mut end) = (0, 0);
    while piece < pieces.len() {
        let (bytes, mut at) = (pieces[piece].as_bytes(), 0);
        while at < bytes.len() && end < text.len() {
            text[end] = bytes[at];
            (at, end) = (at + 1, end + 1);
        }
        piece += 1;
    }
    match std::str::from_utf8(text.split_at(end).0) {
        Ok(text) => panic!("{}", text),
        Err(_) => panic!("invalid number"),
    }
}

const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}
