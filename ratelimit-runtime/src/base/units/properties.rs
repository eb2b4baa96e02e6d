//! Properties of parsing arbitrary text as a duration or a rate.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

use super::*;
use crate::base::property_tests::config;

/// All units with all their names.
const UNITS: [(&str, u64); 18] = [
    ("us", 1),
    ("ms", 1_000),
    ("s", 1_000_000),
    ("sec", 1_000_000),
    ("secs", 1_000_000),
    ("second", 1_000_000),
    ("seconds", 1_000_000),
    ("m", 60_000_000),
    ("min", 60_000_000),
    ("mins", 60_000_000),
    ("minute", 60_000_000),
    ("minutes", 60_000_000),
    ("h", 3_600_000_000),
    ("hour", 3_600_000_000),
    ("hours", 3_600_000_000),
    ("d", 86_400_000_000),
    ("day", 86_400_000_000),
    ("days", 86_400_000_000),
];

/// Numbers, including some near the limit of `u64`.
fn numbers() -> impl Strategy<Value = u128> {
    let limit = u128::from(u64::MAX);
    prop_oneof![4 => 0..100_000_u128, 1 => any::<u64>().prop_map(u128::from), 1 => limit - 3..limit + 3, 1 => any::<u128>()]
}

fn parts() -> impl Strategy<Value = Vec<(u128, usize, &'static str, u64)>> {
    let part = (numbers(), 0..4_usize, select(UNITS.to_vec()))
        .prop_map(|(n, zeros, (name, unit))| (n, zeros, name, unit));
    vec(part, 1..4)
}

/// Text that resembles a duration or a rate.
fn texts() -> impl Strategy<Value = String> {
    let odd = [
        "", " ", "\t", "\u{a0}", "+", "-", ".", "e", "E9", "_", "/", "//", "µs", "５", "٣", "\0", "S", "0",
        "00", "1", "1e3", "forever", " per ", "per",
    ];
    let piece = prop_oneof![
        2 => numbers().prop_map(|number| number.to_string()),
        2 => select(UNITS.to_vec()).prop_map(|(name, _)| name.to_owned()),
        2 => select(odd.to_vec()).prop_map(str::to_owned),
    ];
    vec(piece, 0..6).prop_map(|pieces| pieces.concat())
}

/// Returns the microseconds that the text means according to the documentation, or `None` if it is invalid.
fn documented(text: &str) -> Option<u128> {
    let (mut rest, mut sum) = (text, 0_u128);
    while !rest.is_empty() {
        let digits = rest.find(|char: char| !char.is_ascii_digit())?;
        let number: u64 = rest[..digits].parse().ok()?;
        rest = rest[digits..].trim_start_matches(' ');
        let end = rest.find(|char: char| !char.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (_, unit) = UNITS.iter().find(|(name, _)| *name == &rest[..end])?;
        sum += u128::from(number) * u128::from(*unit);
        rest = &rest[end..];
        // Spaces separate parts, and do not end the text.
        rest = Some(rest.trim_start_matches(' ')).filter(|next| !next.is_empty()).unwrap_or(rest);
    }
    (!text.is_empty()).then_some(sum)
}

fn assert_parsed_as_documented(text: &str) {
    let micros = documented(text);
    let within = micros.and_then(|micros| u64::try_from(micros).ok());
    match (parse_duration(text), within) {
        (Ok(read), Some(micros)) => assert_eq!(read, Duration::from_micros(micros), "{text}"),
        (Err(problem), None) => {
            assert!(
                problem == NOT_A_DURATION || micros.is_some() || problem == TOO_LONG,
                "{text}: {problem}"
            );
        }
        (read, micros) => panic!("{text:?} was parsed as {read:?}, not {micros:?} µs"),
    }
    match parse_timeout(text) {
        Ok(Duration::MAX) => assert_eq!(text, "forever"),
        read => assert_eq!(read.ok(), parse_duration(text).ok(), "{text}"),
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn durations_are_parsed_as_documented(text in prop_oneof![any::<String>(), texts()]) {
        assert_parsed_as_documented(&text);
    }

    #[test]
    fn rates_are_parsed_as_documented(text in prop_oneof![any::<String>(), texts(), (texts(), select(vec!["/", " per "]), texts()).prop_map(|(a, per, b)| format!("{a}{per}{b}"))]) {
        let slash = text.split_once('/').filter(|(permits, _)| !permits.contains('p'));
        let Some((permits, period)) = slash.or_else(|| text.split_once(" per ")) else {
            prop_assert_eq!(parse_rate(&text), Err(NOT_A_RATE));
            return Ok(());
        };
        let period = period.trim_start_matches(' ');
        let permits: Option<u64> = Some(permits.trim_end_matches(' '))
            .filter(|permits| permits.bytes().all(|byte| byte.is_ascii_digit()))
            .and_then(|permits| permits.parse().ok());
        let unit = UNITS.iter().find(|(name, _)| *name == period).map(|(_, unit)| u128::from(*unit));
        let micros = unit.or_else(|| documented(period)).and_then(|micros| u64::try_from(micros).ok());
        let expected = permits.zip(micros.map(Duration::from_micros));
        prop_assert_eq!(parse_rate(&text).ok(), expected, "{:?}", text);
    }

    #[test]
    fn units_are_summed(parts in parts()) {
        let text: String = parts.iter().map(|(n, zeros, name, _)| format!("{}{n}{name}", "0".repeat(*zeros))).collect();
        let fits = |n: &u128| u64::try_from(*n).is_ok();
        let sum = parts.iter().try_fold(0_u128, |sum, (n, _, _, unit)| sum.checked_add(n.checked_mul(u128::from(*unit))?));
        let sum = sum.and_then(|sum| u64::try_from(sum).ok()).filter(|_| parts.iter().all(|(n, ..)| fits(n)));
        prop_assert_eq!(parse_duration(&text).ok(), sum.map(Duration::from_micros), "{}", text);
    }

    #[test]
    fn microseconds_round_trip(permits in any::<u64>(), micros in any::<u64>()) {
        let rate = (permits, Duration::from_micros(micros));
        prop_assert_eq!(parse_duration(&format!("{micros}us")), Ok(rate.1));
        prop_assert_eq!(parse_rate(&format!("{permits}/{micros}us")), Ok(rate));
        prop_assert_eq!(parse_rate(&format!("0{permits}  /   {micros}us")), Ok(rate));
        prop_assert_eq!(parse_rate(&format!("{permits} per {micros} us")), Ok(rate));
    }
}
