//! Properties of rates from arbitrary numbers.

use proptest::prelude::*;

use super::*;
use crate::TokenBucket;
use crate::base::property_tests::config;

/// Returns the fraction in lowest terms.
fn lowest(permits: u64, seconds: u64) -> Rate {
    let (mut divisor, mut rest) = (permits, seconds);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    Rate::new(permits / divisor, Duration::from_secs(seconds / divisor))
}

/// Asserts that the fraction is within a relative 10⁻¹² of the float, and that no fraction with smaller numbers is.
fn assert_simplest(number: f64, rate: Rate) {
    const TRILLION: u128 = 1_000_000_000_000;
    // The float is `digits / 2^scale`.
    let scale = 1075 - (number.to_bits() >> 52);
    let digits = u128::from(number.to_bits() & ((1 << 52) - 1) | (1 << 52));
    // Whether a fraction is below the float, and whether by more than the tolerance. Products may reach 2^170.
    let product = |a: u128, b: u128| {
        let (high, low) = ((a >> 64) * b, (a & u128::from(u64::MAX)) * b);
        (high + (low >> 64), low & u128::from(u64::MAX))
    };
    let is_below = |permits: u128, seconds: u128, trillionths: u128| {
        product(TRILLION << scale, permits) <= product(digits * trillionths, seconds)
    };
    let is_above = |permits: u128, seconds: u128, trillionths: u128| {
        product(TRILLION << scale, permits) >= product(digits * trillionths, seconds)
    };
    let (permits, seconds) = (u128::from(rate.permits), u128::from(rate.period.as_secs()));
    assert!(!is_below(permits, seconds, TRILLION - 1), "{number} became {rate:?}");
    assert!(!is_above(permits, seconds, TRILLION + 1), "{number} became {rate:?}");
    // Every fraction strictly between its parents in the Stern-Brocot tree has larger numbers. The lower parent solves
    // permits · s - seconds · p = 1.
    let (permits, seconds) = (permits as i128, seconds as i128);
    let (mut old, mut new) = ((permits, 1), (seconds, 0));
    while new.0 != 0 {
        let quotient = old.0 / new.0;
        (old, new) = (new, (old.0 - quotient * new.0, old.1 - quotient * new.1));
    }
    assert_eq!(old.0, 1, "{number} became {rate:?}, which can be reduced");
    let s = if seconds == 1 { 1 } else { old.1.rem_euclid(seconds) };
    let p = (permits * s - 1) / seconds;
    assert!(is_below(p as u128, s as u128, TRILLION - 1), "{number} became {rate:?}, not {p}/{s}");
    let (p, s) = (permits - p, seconds - s);
    assert!(is_above(p as u128, s as u128, TRILLION + 1), "{number} became {rate:?}, not {p}/{s}");
}

#[test]
fn products_of_decimals_are_exact() {
    for (factor, hundredths) in [(1.1, 110), (1.5, 150), (3.0, 300)] {
        for n in 1..=1000_u32 {
            let number = f64::from(n) / 10.0 * factor;
            let rate = Rate::try_from(number).unwrap();
            assert_eq!(rate, lowest(u64::from(n) * hundredths, 1000), "{number}");
            assert_simplest(number, rate);
            TokenBucket::new(rate).check().unwrap();
        }
    }
    assert_eq!(Rate::try_from(0.1 + 0.2), Ok(Rate::new(3, Duration::from_secs(10))));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn floats_become_the_simplest_ratio_or_fail(bits in any::<u64>(), scale in -30..41_i32, near in 0.5..2.0_f64) {
        for number in [f64::from_bits(bits), near * 2.0_f64.powi(scale)] {
            let within = (3.1e-9..=1e12).contains(&number);
            let rate = Rate::try_from(number);
            prop_assert_eq!(rate.is_ok(), within, "{}", number);
            if let Ok(rate) = rate {
                assert_simplest(number, rate);
            }
        }
    }

    #[test]
    fn small_ratios_are_recovered(permits in 1..1_000_000_u64, seconds in 1..100_000_u64) {
        let number = permits as f64 / seconds as f64;
        prop_assert_eq!(Rate::try_from(number).unwrap(), lowest(permits, seconds));
    }

    #[test]
    fn every_rate_within_the_bounds_is_taken(number in 3.2e-9..1e4_f64, scale in 1e-9..1.0_f64, parts in 1..100_u64) {
        // The last has a neighbor in the interval of a simpler ratio, and so the largest numbers.
        let close = |fraction: f64| fraction * (1.0 + 1.000_1e-12);
        for number in [number, number * scale, close(1.0 / parts as f64), close(parts as f64)] {
            if number >= 3.2e-9 {
                let rate = Rate::try_from(number).unwrap();
                prop_assert_eq!(TokenBucket::new(rate).check(), Ok(()), "{}", number);
            }
        }
    }

    #[test]
    fn reduced_rates_are_equally_fast(permits in any::<u64>(), secs in any::<u64>(), nanos in 0..1_000_000_000_u32) {
        let period = Duration::new(secs, nanos);
        let Rate { permits: least, period: reduced } = Rate::new(permits, period).reduced();
        // The product may reach 2^158, so it is computed in parts.
        let product = |permits: u64, period: Duration| {
            let (secs, nanos) = (u128::from(permits) * u128::from(period.as_secs()), u128::from(permits) * u128::from(period.subsec_nanos()));
            (secs + nanos / 1_000_000_000, nanos % 1_000_000_000)
        };
        prop_assert_eq!(product(permits, reduced), product(least, period));
        prop_assert_eq!(Rate::new(least, reduced).reduced(), Rate::new(least, reduced));
    }

    #[test]
    fn conversions_never_overflow(permits in 1..=u64::MAX, nanos in 1..=u64::MAX, count in any::<u64>(), micros in any::<u64>()) {
        let rate = Rate::new(permits, Duration::from_nanos(nanos));
        if let Some(takes) = rate.micros_for(count) {
            prop_assert!(rate.permits_in(takes) >= count);
        }
        let _ = rate.permits_in(micros);
    }
}
