//! A share of all calls.

use std::fmt;
use std::str::FromStr;

/// A percentage, exact to a millionth of a percent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Share {
    /// Of a hundred million.
    parts: u64,
}

const DECIMALS: usize = 6;
const ONE_PERCENT: u64 = 1_000_000;
const WHOLE: u64 = 100 * ONE_PERCENT;

impl Share {
    /// Returns the most calls of so many that are no larger share.
    pub(super) fn of(self, calls: u64) -> u64 {
        (u128::from(calls) * u128::from(self.parts) / u128::from(WHOLE)) as u64
    }

    /// Returns the fewest calls of which so many are no larger share: as many as there can be, if the share is none.
    pub(super) fn fewest_calls(self, refused: u64) -> u64 {
        let fewest = (u128::from(refused) * u128::from(WHOLE)).checked_div(u128::from(self.parts));
        fewest.and_then(|fewest| fewest.try_into().ok()).unwrap_or(u64::MAX)
    }

    /// Returns a tenth of the share.
    pub(super) fn tenth(self) -> Self {
        Share { parts: self.parts / 10 }
    }

    /// Returns ten times the share, unless that is all calls.
    pub(super) fn tenfold(self) -> Option<Self> {
        Some(Share { parts: 10 * self.parts }).filter(|share| share.parts < WHOLE)
    }
}

impl FromStr for Share {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const MALFORMED: &str = "write a percentage, like 0.1%";
        let number = text.strip_suffix('%').ok_or(MALFORMED)?.trim_end();
        let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) {
            return Err(MALFORMED);
        }
        if decimals.len() > DECIMALS {
            return Err("a percentage has up to six decimals, like 0.000001%");
        }
        let decimals: u64 = format!("{decimals:0<DECIMALS$}").parse().map_err(|_| MALFORMED)?;
        let parts =
            whole.parse().ok().and_then(|whole: u64| whole.checked_mul(ONE_PERCENT)?.checked_add(decimals));
        let parts = parts
            .filter(|parts| *parts < WHOLE)
            .ok_or("a limit that refuses all calls has no numbers; write less than 100%")?;
        Ok(Share { parts })
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.parts / ONE_PERCENT)?;
        let decimals = format!("{:0>DECIMALS$}", self.parts % ONE_PERCENT);
        let decimals = decimals.trim_end_matches('0');
        if !decimals.is_empty() {
            write!(f, ".{decimals}")?;
        }
        f.write_str("%")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact() {
        for (text, written, of_a_million) in [
            ("0.1%", "0.1%", 1_000),
            ("0.10 %", "0.1%", 1_000),
            ("0%", "0%", 0),
            ("99.999999%", "99.999999%", 999_999),
            ("0.000001%", "0.000001%", 0),
            ("12%", "12%", 120_000),
        ] {
            let share: Share = text.parse().unwrap();
            assert_eq!((share.to_string().as_str(), share.of(1_000_000)), (written, of_a_million), "{text}");
        }
        let share: Share = "0.1%".parse().unwrap();
        assert_eq!((share.of(999), share.of(1_000), share.of(u64::MAX)), (0, 1, u64::MAX / 1_000));
        assert_eq!(
            (share.fewest_calls(20), "0%".parse::<Share>().unwrap().fewest_calls(20)),
            (20_000, u64::MAX)
        );
        assert_eq!(share.tenth(), "0.01%".parse().unwrap());
        assert_eq!(share.tenfold(), "1%".parse().ok());
        assert_eq!("10%".parse::<Share>().unwrap().tenfold(), None);
    }

    #[test]
    fn other_text_is_no_percentage() {
        for text in [
            "",
            "%",
            "0.1",
            "1",
            "-1%",
            "+1%",
            "1.%",
            ".1%",
            "1e1%",
            "1,5%",
            "100%",
            "0.0000001%",
            "99999999999999999999%",
        ] {
            assert!(text.parse::<Share>().is_err(), "{text}");
        }
    }
}
