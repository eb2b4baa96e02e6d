//! Numbers that are known while compiling. What is wrong with one is told where it stands.

use std::time::Duration;

use super::dynamic::checked_count;
use crate::policy::Policy;
use crate::rate::Rate;
use crate::units;

/// A count of permits.
#[track_caller]
#[must_use]
pub const fn count(value: i128) -> u64 {
    match checked_count("", value) {
        Ok(count) => count,
        Err(invalid) => fail("this", invalid.problem()),
    }
}

/// Permits per second.
#[track_caller]
#[must_use]
pub const fn rate_int(value: i128) -> Rate {
    Rate::per_second(count(value))
}

/// Permits per second.
#[track_caller]
#[must_use]
pub const fn rate_float(value: f64) -> Rate {
    match Rate::from_per_second(value) {
        Ok(rate) => rate,
        Err(invalid) => fail("this", invalid.problem()),
    }
}

/// Permits per time, `"100/min"`.
#[track_caller]
#[must_use]
pub const fn rate_str(value: &str) -> Rate {
    match Rate::parse(value) {
        Ok(rate) => rate,
        Err(invalid) => fail("this", invalid.problem()),
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
        Err(problem) => fail("this", problem),
    }
}

/// Stops the compiler where the policy is wrong in this argument.
#[track_caller]
pub const fn admissible(policy: &Policy, argument: &str) {
    if let Err(invalid) = policy.check()
        && same(invalid.argument(), argument)
    {
        fail(argument, invalid.problem());
    }
}

/// Stops the compiler with a sentence: a panic while compiling shows one text, so the two are made one.
#[track_caller]
const fn fail(subject: &str, problem: &str) -> ! {
    let mut text = [b' '; 300];
    let (subject, problem) = (subject.as_bytes(), problem.as_bytes());
    let (mut i, mut j) = (0, 0);
    while i < subject.len() {
        text[i] = subject[i];
        i += 1;
    }
    i += 1;
    while j < problem.len() && i < text.len() {
        text[i] = problem[j];
        (i, j) = (i + 1, j + 1);
    }
    match std::str::from_utf8(text.split_at(i).0) {
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
