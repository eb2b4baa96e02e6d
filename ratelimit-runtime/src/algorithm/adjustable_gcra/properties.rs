//! Conversions between rates, against exact arithmetic.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::property_tests::config;
use crate::rate::Rate;

/// A rate of up to one permit per microsecond, and its exact pace.
fn rate() -> impl Strategy<Value = (Rate, u128, u128)> {
    (1..1_000_000_u64, 1..1_000_000_000_000_u64).prop_map(|(permits, micros)| {
        let micros = micros.max(permits);
        (Rate::new(permits, Duration::from_micros(micros)), u128::from(micros), u128::from(permits))
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn conversions_are_never_too_generous(
        (from, from_micros, from_permits) in rate(),
        (to, to_micros, to_permits) in rate(),
        micros in 0..1_u64 << 49,
    ) {
        let (from, to) = (from.micros_per_permit(), to.micros_per_permit());
        // The exact quotient is `dividend / divisor`.
        let (dividend, divisor) = (u128::from(micros) * to_micros * from_permits, to_permits * from_micros);
        let exact = dividend / divisor;
        let (least, most) = (rounded_down(micros, from, to), rounded_up(micros, from, to));
        if exact < 1 << 50 {
            prop_assert!(u128::from(most) * divisor >= dividend, "{most} of {exact}");
            prop_assert!(u128::from(most) <= exact + 3, "{most} of {exact}");
            prop_assert!(u128::from(least) * divisor <= dividend, "{least} of {exact}");
            prop_assert!(u128::from(least) + 3 >= exact, "{least} of {exact}");
        }
    }
}
