//! Durations and rates as text: `"1h30m"`, `"100/min"`, `"1/5s"`. The parsers are `const`, for literals in attributes.

use std::time::Duration;

const NOT_A_DURATION: &str =
    "is not a duration; write whole numbers with units: \"500ms\", \"30s\", \"5m\", \"1h30m\", \"1d\"";
const NOT_A_TIMEOUT: &str =
    "is not a timeout; write whole numbers with units, \"200ms\", \"5s\", \"1m30s\", or \"forever\"";
const TIMEOUT_TOO_LONG: &str = "is too long; write \"forever\"";
const NOT_A_RATE: &str = "is not a rate; write permits per duration: \"100/min\", \"5/s\", \"1/5s\"";
const TOO_LONG: &str = "is too long; the maximum is 3650 days";

/// Parses a duration: whole numbers, each with a unit (`us`, `ms`, `s`, `m`, `h`, `d`, or a longer name), with or without spaces
/// between them.
pub(crate) const fn parse_duration(text: &str) -> Result<Duration, &'static str> {
    duration(text.as_bytes(), 0, NOT_A_DURATION, TOO_LONG)
}

/// Parses a timeout: a duration, or `forever`, which is `Duration::MAX`.
pub(crate) const fn parse_timeout(text: &str) -> Result<Duration, &'static str> {
    match text.as_bytes() {
        b"forever" => Ok(Duration::MAX),
        bytes => duration(bytes, 0, NOT_A_TIMEOUT, TIMEOUT_TOO_LONG),
    }
}

/// Parses a rate: permits, a slash or `per`, and a duration or a single unit.
pub(crate) const fn parse_rate(text: &str) -> Result<(u64, Duration), &'static str> {
    let bytes = text.as_bytes();
    let Some((permits, at)) = number(bytes, 0) else {
        return Err(NOT_A_RATE);
    };
    let divisor = skip_spaces(bytes, at);
    let from = match bytes.split_at(divisor).1 {
        [b'/', ..] => skip_spaces(bytes, divisor + 1),
        [b'p', b'e', b'r', b' ', ..] if divisor > at => skip_spaces(bytes, divisor + 3),
        _ => return Err(NOT_A_RATE),
    };
    if let Some(unit) = unit(bytes.split_at(from).1) {
        return Ok((permits, Duration::from_micros(unit)));
    }
    match duration(bytes, from, NOT_A_RATE, TOO_LONG) {
        Ok(period) => Ok((permits, period)),
        Err(problem) => Err(problem),
    }
}

/// Parses the duration that starts at `at`. Fails with one of the given problems.
const fn duration(
    bytes: &[u8],
    mut at: usize,
    malformed: &'static str,
    too_long: &'static str,
) -> Result<Duration, &'static str> {
    let mut micros = 0u64;
    if at == bytes.len() {
        return Err(malformed);
    }
    while at < bytes.len() {
        let Some((count, from)) = number(bytes, at) else {
            return Err(malformed);
        };
        let name = skip_spaces(bytes, from);
        at = name;
        while at < bytes.len() && bytes[at].is_ascii_alphabetic() {
            at += 1;
        }
        let Some(unit) = unit(bytes.split_at(at).0.split_at(name).1) else {
            return Err(malformed);
        };
        let Some(part) = count.checked_mul(unit) else {
            return Err(too_long);
        };
        let Some(sum) = micros.checked_add(part) else {
            return Err(too_long);
        };
        micros = sum;
        let next = skip_spaces(bytes, at);
        if next < bytes.len() {
            at = next;
        }
    }
    Ok(Duration::from_micros(micros))
}

/// Parses the number that starts at `at`. Returns it and its end, or `None` if there is none or it exceeds `u64`.
const fn number(bytes: &[u8], mut at: usize) -> Option<(u64, usize)> {
    let from = at;
    let mut number = 0u64;
    while at < bytes.len() && bytes[at].is_ascii_digit() {
        let Some(tens) = number.checked_mul(10) else { return None };
        let Some(sum) = tens.checked_add((bytes[at] - b'0') as u64) else { return None };
        number = sum;
        at += 1;
    }
    if at == from { None } else { Some((number, at)) }
}

/// Returns the unit in microseconds.
const fn unit(name: &[u8]) -> Option<u64> {
    Some(match name {
        b"us" => 1,
        b"ms" => 1_000,
        b"s" | b"sec" | b"secs" | b"second" | b"seconds" => 1_000_000,
        b"m" | b"min" | b"mins" | b"minute" | b"minutes" => 60_000_000,
        b"h" | b"hour" | b"hours" => 3_600_000_000,
        b"d" | b"day" | b"days" => 86_400_000_000,
        _ => return None,
    })
}

/// The units in which durations are written, in microseconds, and their names where nothing counts them: `5m`, but `100/min`.
const WRITTEN: [(u128, &str, &str); 6] = [
    (86_400_000_000, "d", "day"),
    (3_600_000_000, "h", "h"),
    (60_000_000, "m", "min"),
    (1_000_000, "s", "s"),
    (1_000, "ms", "ms"),
    (1, "us", "us"),
];

/// Writes a duration in the largest unit of which it is a multiple, such as `90s`, as [`parse_duration`] reads it. `None` if it is
/// no whole number of microseconds.
pub(crate) fn write_duration(time: Duration) -> Option<String> {
    let (count, unit, _) = in_largest_unit(time)?;
    Some(format!("{count}{unit}"))
}

/// Writes a rate as [`parse_rate`] reads it, such as `100/min` or `1/5s`. `None` if the period is no whole number of microseconds.
pub(crate) fn write_rate(permits: u64, period: Duration) -> Option<String> {
    Some(match in_largest_unit(period)? {
        (1, _, unit) => format!("{permits}/{unit}"),
        (count, unit, _) => format!("{permits}/{count}{unit}"),
    })
}

fn in_largest_unit(time: Duration) -> Option<(u128, &'static str, &'static str)> {
    let micros = time.as_micros();
    let (size, counted, single) = match micros {
        0 => (1_000_000, "s", "s"),
        _ => *WRITTEN.iter().find(|(size, ..)| micros.is_multiple_of(*size))?,
    };
    time.subsec_nanos().is_multiple_of(1000).then_some((micros / size, counted, single))
}

const fn skip_spaces(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] == b' ' {
        at += 1;
    }
    at
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_parsed() {
        for (text, micros) in [
            ("500ms", 500_000),
            ("30s", 30_000_000),
            ("1h30m", 5_400_000_000),
            ("1d", 86_400_000_000),
            ("7us", 7),
            ("0s", 0),
            ("1min1sec", 61_000_000),
            ("1 minute", 60_000_000),
            ("1 day", 86_400_000_000),
            ("2 hours", 7_200_000_000),
            ("5 mins", 300_000_000),
            ("1 h 30 min", 5_400_000_000),
            ("1 hour  30minutes", 5_400_000_000),
        ] {
            assert_eq!(parse_duration(text), Ok(Duration::from_micros(micros)), "{text}");
        }
    }

    #[test]
    fn durations_and_rates_are_written() {
        for (micros, duration, rate) in [
            (86_400_000_000, "1d", "7/day"),
            (5_400_000_000, "90m", "7/90m"),
            (60_000_000, "1m", "7/min"),
            (1_000_000, "1s", "7/s"),
            (1_500_000, "1500ms", "7/1500ms"),
            (1, "1us", "7/us"),
            (0, "0s", "7/0s"),
        ] {
            let time = Duration::from_micros(micros);
            assert_eq!(write_duration(time).as_deref(), Some(duration));
            assert_eq!(write_rate(7, time).as_deref(), Some(rate));
            assert_eq!((parse_duration(duration), parse_rate(rate)), (Ok(time), Ok((7, time))));
        }
        let finer = Duration::from_nanos(1_000_001);
        assert_eq!((write_duration(finer), write_rate(7, finer)), (None, None));
    }

    #[test]
    fn invalid_durations_are_errors() {
        for text in [
            "",
            "5",
            "s",
            "-5s",
            "1.5s",
            "5S",
            "5sm",
            "5x",
            "1h30",
            "ms5",
            "５s",
            " 5s",
            "5s ",
            "5 ",
            "5 5s",
            "5\ts",
            "1 month",
            "1M",
            "1h and 30min",
            "1h, 30min",
            "5 per minute",
        ] {
            assert_eq!(parse_duration(text), Err(NOT_A_DURATION), "{text}");
        }
        for text in ["18446744073709551615d", "300000000d1000000000000h"] {
            assert_eq!(parse_duration(text), Err(TOO_LONG), "{text}");
        }
    }

    #[test]
    fn timeouts_are_parsed() {
        assert_eq!(parse_timeout("200ms"), Ok(Duration::from_millis(200)));
        assert_eq!(parse_timeout("0s"), Ok(Duration::ZERO));
        assert_eq!(parse_timeout("forever"), Ok(Duration::MAX));
        for text in ["", "5", "Forever", "forever ", "for ever", "-1s"] {
            assert_eq!(parse_timeout(text), Err(NOT_A_TIMEOUT), "{text}");
        }
        assert_eq!(parse_timeout("18446744073709551615d"), Err(TIMEOUT_TOO_LONG));
    }

    #[test]
    fn rates_are_parsed() {
        for (text, permits, micros) in [
            ("100/min", 100, 60_000_000),
            ("5/s", 5, 1_000_000),
            ("1/5s", 1, 5_000_000),
            ("10 / 1h30m", 10, 5_400_000_000),
            ("1000/day", 1000, 86_400_000_000),
            ("5 per minute", 5, 60_000_000),
            ("5 per 10 seconds", 5, 10_000_000),
            ("5  per  1h30m", 5, 5_400_000_000),
            ("100 / 1 minute", 100, 60_000_000),
            ("100/2 hours", 100, 7_200_000_000),
        ] {
            assert_eq!(parse_rate(text), Ok((permits, Duration::from_micros(micros))), "{text}");
        }
        for text in [
            "",
            "100",
            "100/",
            "/min",
            "100/mim",
            "1.5/s",
            "-1/s",
            "100//s",
            "100/5",
            "5/s ",
            "5per minute",
            "5 perminute",
            "5 per",
            "5 per ",
            "5 per 10",
            "per minute",
            "5 Per minute",
            "5 per per minute",
            "5 per / minute",
            "5 a minute",
            "5 minute",
            "5 per month",
        ] {
            assert_eq!(parse_rate(text), Err(NOT_A_RATE), "{text}");
        }
    }
}
