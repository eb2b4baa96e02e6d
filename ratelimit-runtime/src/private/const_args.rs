//! Numbers that are known while compiling. What is wrong with one is told where it stands.

use std::time::Duration;

use super::runtime_args::{checked_count, checked_rate};
use crate::bounds::LONGEST;
use crate::policy::Policy;
use crate::rate::Rate;
use crate::units;

/// A count of permits.
#[track_caller]
#[must_use]
pub const fn count(value: i128) -> u64 {
    match checked_count("", value) {
        Ok(count) => count,
        Err(invalid) => fail(&["this ", invalid.problem()]),
    }
}

/// Permits per second.
#[track_caller]
#[must_use]
pub const fn rate_int(value: i128) -> Rate {
    match checked_rate("", value) {
        Ok(rate) => rate,
        Err(invalid) => fail(&["this ", invalid.problem()]),
    }
}

/// Permits per second.
#[track_caller]
#[must_use]
pub const fn rate_float(value: f64) -> Rate {
    match Rate::from_per_second(value) {
        Ok(rate) => rate,
        Err(invalid) => fail(&["this ", invalid.problem()]),
    }
}

/// Permits per time, `"100/min"`.
#[track_caller]
#[must_use]
pub const fn rate_str(value: &str) -> Rate {
    match Rate::parse(value) {
        Ok(rate) => rate,
        Err(invalid) => fail(&["this ", invalid.problem()]),
    }
}

/// A period of whole seconds.
#[track_caller]
#[must_use]
pub const fn seconds(value: i128) -> Duration {
    Duration::from_secs(count(value))
}

/// A duration with its unit, `"1h30m"`.
#[track_caller]
#[must_use]
pub const fn duration(value: &str) -> Duration {
    match units::parse_duration(value) {
        Ok(duration) => duration,
        Err(problem) => fail(&["this ", problem]),
    }
}

/// A time to wait at the most, `"200ms"` or `"forever"`.
#[track_caller]
#[must_use]
pub const fn timeout(value: &str) -> Duration {
    match units::parse_timeout(value) {
        Ok(duration) => duration,
        Err(problem) => fail(&["this ", problem]),
    }
}

/// Stands in for the rate that is computed beside a literal burst or capacity: any that is right fits it, so the fastest
/// does.
pub const FASTEST: Rate = Rate::per_second(1_000_000);

/// Stands in for a number that is computed beside a literal one and does not change what that one may be.
pub const ONE_PER_SECOND: Rate = Rate::per_second(1);

/// Stands in for a time that is computed beside a literal.
pub const SECOND: Duration = Duration::from_secs(1);

/// Stands in for the period that is computed beside a literal precision: one that it divides, if any.
#[must_use]
pub const fn divided_by(precision: Duration) -> Duration {
    let period = precision.saturating_mul(2);
    if period.as_nanos() > LONGEST.as_nanos() { LONGEST } else { period }
}

/// Stops the compiler where the policy is wrong in this argument.
#[track_caller]
pub const fn admissible(policy: &Policy, argument: &str) {
    if let Err(invalid) = policy.check()
        && same(invalid.argument(), argument)
    {
        fail(&[argument, " ", invalid.problem()]);
    }
}

/// Stops the compiler where a call costs more than the policy could ever give.
#[track_caller]
pub const fn payable(policy: &Policy, cost: u64) {
    // A policy that makes no sense is told where the number stands that is wrong.
    let Ok(spec) = policy.spec() else { return };
    let Some(most) = spec.max_cost() else { return };
    if cost > most {
        let (digits, first) = digits(most);
        let Ok(most) = std::str::from_utf8(digits.split_at(first).1) else { return };
        fail(&["cost is more than the policy ever admits, ", most, "; write at most ", most]);
    }
}

/// The number in ASCII, from the place on that is told.
const fn digits(mut number: u64) -> ([u8; 20], usize) {
    let (mut text, mut first) = ([b'0'; 20], 20);
    while number > 0 || first == 20 {
        first -= 1;
        text[first] = b'0' + (number % 10) as u8;
        number /= 10;
    }
    (text, first)
}

/// Stops the compiler with a sentence: a panic while compiling shows one text, so the pieces are made one.
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
        Err(_) => panic!("this number makes no sense here"),
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
