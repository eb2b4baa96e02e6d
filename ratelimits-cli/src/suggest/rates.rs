//! The rates that are tried.

use std::fmt;

/// A rate with up to two significant digits, in the unit that people would write it in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rate {
    permits: u64,
    unit: &'static str,
    /// The length of the unit in microseconds.
    period: u64,
}

const SECOND: u64 = 1_000_000;

/// Each unit, its length in microseconds, and the first and the last rate that are written in it. Slower ones are written in the unit
/// before, and faster ones in the next.
const UNITS: [(&str, u64, u64, u64); 4] = [
    ("day", 86_400 * SECOND, 1, 239),
    ("h", 3_600 * SECOND, 10, 599),
    ("min", 60 * SECOND, 10, 599),
    ("s", SECOND, 10, 1_000_000),
];

/// Returns the rates from one per day to a million per second.
pub(super) fn rates() -> impl Iterator<Item = Rate> {
    UNITS.into_iter().flat_map(|(unit, period, first, last)| {
        let next = |permits: &u64| Some(permits + 10u64.pow(permits.ilog10().saturating_sub(1)));
        let permits = std::iter::successors(Some(first), next).take_while(move |permits| *permits <= last);
        permits.map(move |permits| Rate { permits, unit, period })
    })
}

impl Rate {
    /// Returns whether it is 1, 2 or 5 times a power of ten.
    pub(super) fn is_round(self) -> bool {
        let power = 10u64.pow(self.permits.ilog10());
        [power, 2 * power, 5 * power].contains(&self.permits)
    }

    /// Returns the whole permits that refill in this time, in microseconds.
    pub(super) fn refill_in(self, micros: u64) -> u64 {
        let permits = u128::from(micros) * u128::from(self.permits) / u128::from(self.period);
        permits.try_into().unwrap_or(u64::MAX)
    }

    /// Returns the microseconds in which so many permits refill.
    pub(super) fn micros_for(self, permits: u64) -> u64 {
        let micros = (u128::from(permits) * u128::from(self.period)).div_ceil(u128::from(self.permits));
        micros.try_into().unwrap_or(u64::MAX)
    }

    /// Returns the product with a burst, in permits² per day.
    pub(super) fn times(self, burst: u64) -> u128 {
        u128::from(burst) * u128::from(self.permits) * u128::from(UNITS[0].1 / self.period)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.permits, self.unit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_ascend_from_one_per_day_to_a_million_per_second() {
        let rates: Vec<Rate> = rates().collect();
        assert!(rates.windows(2).all(|pair| pair[0].times(1) < pair[1].times(1)));
        // From ten per day on they are a tenth apart at most.
        assert!(rates[9..].windows(2).all(|pair| pair[1].times(10) <= pair[0].times(11)));
        let round: Vec<_> = rates.iter().filter(|rate| rate.is_round()).map(Rate::to_string).collect();
        let expected = "1/day 2/day 5/day 10/day 20/day 50/day 100/day 200/day 10/h 20/h 50/h 100/h 200/h 500/h 10/min 20/min 50/min \
                        100/min 200/min 500/min 10/s 20/s 50/s 100/s 200/s 500/s 1000/s 2000/s 5000/s 10000/s 20000/s 50000/s 100000/s \
                        200000/s 500000/s 1000000/s";
        assert_eq!(round.join(" "), expected);
    }

    #[test]
    fn refills_are_exact() {
        let rate = rates().find(|rate| rate.to_string() == "70/min").unwrap();
        assert_eq!((rate.refill_in(6_000_000), rate.refill_in(5_999_999)), (7, 6));
        assert_eq!((rate.micros_for(7), rate.micros_for(1)), (6_000_000, 857_143));
    }
}
