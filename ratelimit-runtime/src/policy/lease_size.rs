//! How many permits a process takes of Redis at a time.

use crate::base::invalid_policy::InvalidPolicy;

/// What an attribute says of the size of leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseSize {
    /// So many permits.
    Permits(u64),
    /// As many as the process needs while they live, which this bounds.
    Slack(Slack),
}

/// The share of its burst by which a bucket may be exceeded, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slack(u32);

const PERCENT: u32 = 10_000;
const MOST: u32 = 10 * PERCENT;

impl Slack {
    /// Parses a percentage such as `"1%"` or `"0.1%"`, with up to four decimals.
    ///
    /// # Errors
    ///
    /// If it is none, is 0, or is more than 10 %.
    pub const fn parse(text: &str) -> Result<Self, InvalidPolicy> {
        let text = text.as_bytes();
        let (mut millionths, mut unit, mut digits, mut i) = (0, PERCENT, 0, 0);
        let mut is_fraction = false;
        while i < text.len() {
            match text[i] {
                b'0'..=b'9' if is_fraction && unit == 1 => {
                    return Err(invalid("has more than four decimals; write as many as `\"0.0001%\"` has"));
                }
                digit @ b'0'..=b'9' => {
                    let digit = (digit - b'0') as u32;
                    if is_fraction {
                        unit /= 10;
                        millionths += digit * unit;
                    } else {
                        millionths = millionths * 10 + digit * unit;
                    }
                    digits += 1;
                }
                b'.' if !is_fraction && digits > 0 => (is_fraction, digits) = (true, 0),
                b'%' if digits > 0 && i + 1 == text.len() => {
                    return match millionths {
                        0 => Err(invalid(
                            "is 0, which makes every call ask Redis; leave it out, or write `\"1%\"`",
                        )),
                        _ if millionths > MOST => Err(TOO_MUCH),
                        _ => Ok(Slack(millionths)),
                    };
                }
                _ => break,
            }
            if millionths > 100 * MOST {
                return Err(TOO_MUCH);
            }
            i += 1;
        }
        Err(invalid("is not a percentage; write one such as `\"1%\"` or `\"0.1%\"`"))
    }

    /// Returns this share of a number, rounded down.
    pub(crate) const fn of(self, whole: u64) -> u64 {
        (whole as u128 * self.0 as u128 / 1_000_000) as u64
    }
}

const TOO_MUCH: InvalidPolicy =
    invalid("is more than 10%, by which a limit says little; write at most `\"10%\"`, or a larger `burst`");

const fn invalid(problem: &'static str) -> InvalidPolicy {
    InvalidPolicy::new("slack", problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_exact() {
        for (text, millionths) in [
            ("1%", 10_000),
            ("0.1%", 1_000),
            ("5%", 50_000),
            ("10%", 100_000),
            ("10.0000%", 100_000),
            ("0.0001%", 1),
            ("2.5%", 25_000),
            ("01%", 10_000),
        ] {
            assert_eq!(Slack::parse(text).unwrap(), Slack(millionths), "{text}");
        }
        assert_eq!(Slack(1).of(999_999), 0);
        assert_eq!(Slack(100_000).of(u64::MAX), u64::MAX / 10);
    }

    #[test]
    fn other_texts_are_errors() {
        for (text, problem) in [
            ("0%", "is 0"),
            ("0.0000%", "is 0"),
            ("10.0001%", "more than 10%"),
            ("100%", "more than 10%"),
            ("99999999999999999999%", "more than 10%"),
            ("0.00001%", "more than four decimals"),
            ("", "not a percentage"),
            ("%", "not a percentage"),
            ("1", "not a percentage"),
            ("0.01", "not a percentage"),
            ("1 %", "not a percentage"),
            ("-1%", "not a percentage"),
            (".5%", "not a percentage"),
            ("1.%", "not a percentage"),
            ("1.0.0%", "not a percentage"),
            ("1%%", "not a percentage"),
            ("one%", "not a percentage"),
        ] {
            let invalid = Slack::parse(text).unwrap_err();
            assert!(invalid.problem().contains(problem), "{text}: {}", invalid.problem());
        }
    }
}
