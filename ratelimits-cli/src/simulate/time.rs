//! The times of logs, in microseconds since the Unix epoch.

use jiff::Timestamp;
use jiff::fmt::strtime;

/// Times from this one on, of the year 2200, are not read: the algorithms count up to 2^53 microseconds.
const END: u64 = 7_258_118_400_000_000;

/// Numbers from this one on are milliseconds: as seconds they would be after the year 5000.
const MILLISECONDS_FROM: u64 = 100_000_000_000;

/// Parses RFC 3339, or Unix time in seconds or milliseconds.
pub(super) fn parse(text: &str) -> Option<u64> {
    unix(text).or_else(|| micros(text.parse().ok()?))
}

/// Parses the time of the common log format: `10/Oct/2000:13:55:36 -0700`.
pub(super) fn parse_common(text: &str) -> Option<u64> {
    let time = strtime::parse("%d/%b/%Y:%H:%M:%S %z", text).ok()?;
    micros(time.to_timestamp().ok()?)
}

/// Formats a time as RFC 3339 in UTC.
pub(super) fn format(micros: u64) -> String {
    let time = i64::try_from(micros).ok().and_then(|micros| Timestamp::from_microsecond(micros).ok());
    time.unwrap_or(Timestamp::MAX).to_string()
}

fn micros(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_microsecond()).ok().filter(|micros| *micros < END)
}

/// Parses a decimal number. Digits beyond microseconds are dropped.
fn unix(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let (unit, digits) = if whole < MILLISECONDS_FROM { (1_000_000, 6) } else { (1_000, 3) };
    let fraction: u64 = format!("{fraction:0<digits$.digits$}").parse().ok()?;
    whole.checked_mul(unit)?.checked_add(fraction).filter(|micros| *micros < END)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        for (text, micros) in [
            ("971211336", 971_211_336_000_000),
            ("971211336.5", 971_211_336_500_000),
            ("971211336.123456789", 971_211_336_123_456),
            ("971211336000", 971_211_336_000_000),
            ("971211336123.75", 971_211_336_123_750),
            ("0", 0),
            ("2000-10-10T20:55:36Z", 971_211_336_000_000),
            ("2000-10-10 13:55:36.25-07:00", 971_211_336_250_000),
            ("2000-10-10t20:55:36.000001z", 971_211_336_000_001),
        ] {
            assert_eq!(parse(text), Some(micros), "{text}");
        }
        assert_eq!(parse_common("10/Oct/2000:13:55:36 -0700"), Some(971_211_336_000_000));
        assert_eq!(format(971_211_336_250_000), "2000-10-10T20:55:36.25Z");
    }

    #[test]
    fn other_text_is_no_time() {
        for text in [
            "",
            ".",
            "5.",
            ".5",
            "-5",
            "+5",
            "1e9",
            "127.0.0.1",
            "2000-10-10",
            "2000-10-10T20:55:36",
            "1960-01-01T00:00:00Z",
            "2500-01-01T00:00:00Z",
            "99999999999999999999",
            "9999999999999999999",
            "５",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
        for text in [
            "",
            "10/Oct/2000",
            "10/Oct/2000:13:55:36",
            "32/Oct/2000:13:55:36 -0700",
            "10/Okt/2000:13:55:36 -0700",
        ] {
            assert_eq!(parse_common(text), None, "{text}");
        }
    }
}
