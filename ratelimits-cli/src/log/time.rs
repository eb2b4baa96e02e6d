//! The times of logs, in nanoseconds since the Unix epoch.

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::tz::Offset;

const SECOND: u64 = 1_000_000_000;

/// Times from this one on, of the year 2200, are not read: the algorithms count up to 2^53 microseconds.
const END: u64 = 7_258_118_400 * SECOND;

/// Unix times from these numbers on are in a smaller unit, of so many nanoseconds: in the larger one they would be after the year 5000.
const UNITS: [(u64, u64); 4] =
    [(100_000_000_000_000_000, 1), (100_000_000_000_000, 1_000), (100_000_000_000, 1_000_000), (0, SECOND)];

const MONTHS: [&[u8; 3]; 12] =
    [b"Jan", b"Feb", b"Mar", b"Apr", b"May", b"Jun", b"Jul", b"Aug", b"Sep", b"Oct", b"Nov", b"Dec"];

/// Parses RFC 3339, or Unix time in seconds, milliseconds, microseconds or nanoseconds.
pub(crate) fn parse(text: &str) -> Option<u64> {
    // What cannot be RFC 3339 is refused at once: most lines are tried.
    if text.as_bytes().get(4) == Some(&b'-') { nanos(text.parse().ok()?) } else { unix(text) }
}

/// Parses the time of the common log format: `10/Oct/2000:13:55:36 -0700`.
pub(crate) fn parse_common(text: &str) -> Option<u64> {
    let [d, e, b'/', m, n, o, b'/', y @ .., b' ', sign, zone_h, zone_i, zone_m, zone_n] = text.as_bytes()
    else {
        return None;
    };
    let [y, z, a, c, b':', h, i, b':', k, l, b':', s, t] = y else { return None };
    let month = MONTHS.iter().position(|name| **name == [*m, *n, *o])? as i8 + 1;
    let year = i16::from(two(y, z)?) * 100 + i16::from(two(a, c)?);
    let second = match two(s, t)? {
        // A leap second, which Unix time does not have.
        60 => 59,
        second => second,
    };
    let time = DateTime::new(year, month, two(d, e)?, two(h, i)?, two(k, l)?, second, 0).ok()?;
    let (hours, minutes) = (two(zone_h, zone_i)?, two(zone_m, zone_n).filter(|minutes| *minutes < 60)?);
    let seconds = i32::from(hours) * 3_600 + i32::from(minutes) * 60;
    let offset = Offset::from_seconds(match sign {
        b'+' => seconds,
        b'-' => -seconds,
        _ => return None,
    });
    nanos(offset.ok()?.to_timestamp(time).ok()?)
}

/// Parses a decimal number of seconds, as a duration. Digits beyond nanoseconds are dropped.
pub(crate) fn seconds(text: &str) -> Option<u64> {
    decimal(text, |_| SECOND)
}

/// Formats a time as RFC 3339 in UTC.
pub(crate) fn format(nanos: u64) -> String {
    Timestamp::from_nanosecond(nanos.into()).unwrap_or(Timestamp::MAX).to_string()
}

fn nanos(time: Timestamp) -> Option<u64> {
    u64::try_from(time.as_nanosecond()).ok().filter(|nanos| *nanos < END)
}

/// Parses a Unix time. Digits beyond nanoseconds are dropped.
fn unix(text: &str) -> Option<u64> {
    let unit = |whole| UNITS.into_iter().find(|(from, _)| whole >= *from).map_or(SECOND, |(_, unit)| unit);
    decimal(text, unit).filter(|nanos| *nanos < END)
}

/// Parses a decimal number of a unit, which depends on the whole part.
fn decimal(text: &str, unit: impl Fn(u64) -> u64) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(fraction) {
        return None;
    }
    let whole: u64 = whole.parse().ok()?;
    let unit = unit(whole);
    let (mut nanos, mut place) = (whole.checked_mul(unit)?, unit);
    for digit in fraction.bytes() {
        place /= 10;
        nanos = nanos.checked_add(place * u64::from(digit - b'0'))?;
    }
    Some(nanos)
}

/// Parses a number of two digits.
fn two(tens: &u8, ones: &u8) -> Option<i8> {
    (tens.is_ascii_digit() && ones.is_ascii_digit()).then(|| ((tens - b'0') * 10 + ones - b'0') as i8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_parsed() {
        for (text, nanos) in [
            ("971211336", 971_211_336_000_000_000),
            ("971211336.5", 971_211_336_500_000_000),
            ("971211336.1234567899", 971_211_336_123_456_789),
            ("971211336000", 971_211_336_000_000_000),
            ("971211336123.75", 971_211_336_123_750_000),
            ("971211336123456", 971_211_336_123_456_000),
            ("971211336123456789", 971_211_336_123_456_789),
            ("0", 0),
            ("2000-10-10T20:55:36Z", 971_211_336_000_000_000),
            ("2000-10-10 13:55:36.25-07:00", 971_211_336_250_000_000),
            ("2000-10-10t20:55:36.000000001z", 971_211_336_000_000_001),
        ] {
            assert_eq!(parse(text), Some(nanos), "{text}");
        }
        assert_eq!(parse_common("10/Oct/2000:13:55:36 -0700"), Some(971_211_336_000_000_000));
        assert_eq!(parse_common("29/Feb/2024:23:59:59 +0530"), parse("2024-02-29T23:59:59+05:30"));
        assert_eq!(format(971_211_336_250_000_000), "2000-10-10T20:55:36.25Z");
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
            "10/Oct/2000:13:55:36  0700",
            "10/Oct/2000:13:55:36 -07:0",
            "10/Oct/2000:13:55:36 -9900",
            "10/Oct/2000:13:55:61 -0700",
            "29/Feb/2023:13:55:36 -0700",
            "1/Oct/2000:13:55:36 -0700",
        ] {
            assert_eq!(parse_common(text), None, "{text}");
        }
    }
}
