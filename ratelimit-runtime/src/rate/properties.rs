//! Properties of rates from arbitrary numbers.

use proptest::prelude::*;

use super::*;
use crate::property_tests::config;

proptest! {
    #![proptest_config(config())]

    #[test]
    fn floats_round_trip_or_fail(bits in any::<u64>(), scale in -30..41_i32, near in 0.5..2.0_f64) {
        for number in [f64::from_bits(bits), near * 2.0_f64.powi(scale)] {
            let within = (3.1e-9..=1e12).contains(&number);
            let rate = Rate::try_from(number);
            prop_assert_eq!(rate.is_ok(), within, "{}", number);
            if let Ok(rate) = rate {
                prop_assert_eq!(rate.permits as f64 / rate.period.as_secs() as f64, number);
            }
        }
    }

    #[test]
    fn small_ratios_are_recovered(permits in 1..1_000_000_u64, seconds in 1..100_000_u64) {
        let (mut a, mut b) = (permits, seconds);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        let number = permits as f64 / seconds as f64;
        let rate = Rate::new(permits / a, Duration::from_secs(seconds / a));
        prop_assert_eq!(Rate::try_from(number).unwrap(), rate);
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
