//! Durations for people.

use std::time::Duration;

/// Writes a duration in its one or two largest units, rounded up: `40ms`, `1.5s`, `3m20s`, `1d4h`.
pub(crate) fn human(duration: Duration) -> String {
    let millis = duration.as_nanos().div_ceil(1_000_000);
    let tenths = millis.div_ceil(100);
    match millis {
        0..1000 => format!("{millis}ms"),
        _ if tenths < 100 && !tenths.is_multiple_of(10) => format!("{}.{}s", tenths / 10, tenths % 10),
        _ => {
            let seconds = millis.div_ceil(1000);
            let minutes = seconds.div_ceil(60);
            let hours = minutes.div_ceil(60);
            match seconds {
                0..60 => format!("{seconds}s"),
                _ if seconds < 3600 => two(seconds, 60, "m", "s"),
                _ if minutes < 24 * 60 => two(minutes, 60, "h", "m"),
                _ => two(hours, 24, "d", "h"),
            }
        }
    }
}

/// Writes a number of units, so many of which are a larger one.
fn two(units: u128, per_larger: u128, larger: &str, smaller: &str) -> String {
    match (units / per_larger, units % per_larger) {
        (most, 0) => format!("{most}{larger}"),
        (most, rest) => format!("{most}{larger}{rest}{smaller}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_at_most_two_units_and_are_rounded_up() {
        for (micros, text) in [
            (0, "0ms"),
            (1, "1ms"),
            (39_001, "40ms"),
            (999_001, "1s"),
            (1_000_000, "1s"),
            (1_400_001, "1.5s"),
            (9_900_001, "10s"),
            (59_100_000, "1m"),
            (60_000_001, "1m1s"),
            (200_000_000, "3m20s"),
            (3_599_100_000, "1h"),
            (3_660_000_000, "1h1m"),
            (3_600_000_001, "1h1m"),
            (86_399_999_999, "1d"),
            (100_800_000_000, "1d4h"),
            (3650 * 86_400_000_000, "3650d"),
        ] {
            assert_eq!(human(Duration::from_micros(micros)), text, "{micros}");
        }
    }
}
