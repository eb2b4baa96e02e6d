//! What of a spec is part of its keys.

use std::mem;

use super::spec::AlgorithmSpec;

impl AlgorithmSpec {
    /// Returns whether both specs have the same keys, so that one head serves both.
    #[inline]
    pub(crate) fn has_keys_of(&self, other: &Self) -> bool {
        match (self, other) {
            (AlgorithmSpec::AdjustableGcra(one), AlgorithmSpec::AdjustableGcra(other)) => {
                mem::discriminant(&one.0.kind) == mem::discriminant(&other.0.kind)
            }
            (AlgorithmSpec::SettledGcra(one), AlgorithmSpec::SettledGcra(other)) => {
                mem::discriminant(&one.0.kind) == mem::discriminant(&other.0.kind)
            }
            (AlgorithmSpec::IntervalBucket(one), AlgorithmSpec::IntervalBucket(other))
                if one.adjustable && other.adjustable =>
            {
                one.period == other.period
            }
            (AlgorithmSpec::WarmingUp(one), AlgorithmSpec::WarmingUp(other))
                if one.adjustable && other.adjustable =>
            {
                true
            }
            (AlgorithmSpec::FixedWindow(one), AlgorithmSpec::FixedWindow(other)) => {
                (one.period, one.aligned) == (other.period, other.aligned)
            }
            (AlgorithmSpec::CalendarWindow(one), AlgorithmSpec::CalendarWindow(other)) => {
                one.calendar.period_name() == other.calendar.period_name()
            }
            (AlgorithmSpec::SlidingWindow(one), AlgorithmSpec::SlidingWindow(other)) => {
                (one.period, one.precision) == (other.period, other.precision)
            }
            (AlgorithmSpec::Holds(_), AlgorithmSpec::Holds(_)) => true,
            _ => self == other,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use crate::base::property_tests::config;
    use crate::base::rate::Rate;
    use crate::policy::{ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, SlidingWindow, TokenBucket};

    fn policy() -> impl Strategy<Value = Policy> {
        (0..18, 1..3_u64, 2..4_u64).prop_map(|(kind, limit, seconds)| {
            let rate = Rate::new(limit, Duration::from_secs(seconds));
            let bucket = TokenBucket::new(rate).burst(limit + seconds);
            let funnel = LeakyBucket::new(limit, rate);
            let window = FixedWindow::new(limit, Duration::from_secs(seconds));
            let sliding = SlidingWindow::new(limit, Duration::from_secs(seconds));
            match kind {
                0 => bucket.into(),
                1 => bucket.adjustable().into(),
                2 => bucket.borrow().into(),
                3 => bucket.borrow().adjustable().into(),
                4 => bucket.interval_refill().into(),
                5 => bucket.interval_refill().adjustable().into(),
                6 => TokenBucket::new(rate).warmup(Duration::from_secs(seconds)).adjustable().into(),
                7 => funnel.adjustable().into(),
                8 => funnel.queue().adjustable().into(),
                9 => window.into(),
                10 => window.aligned().into(),
                11 => sliding.into(),
                12 => bucket.settled().into(),
                13 => bucket.borrow().settled().into(),
                14 => funnel.settled().into(),
                15 => ConcurrencyLimit::new(limit).into(),
                #[cfg(feature = "calendar")]
                16 => {
                    let period = crate::CalendarPeriod::ALL[seconds as usize];
                    FixedWindow::calendar(limit, period)
                        .zone(["UTC", "Asia/Tokyo"][limit as usize - 1])
                        .unwrap()
                        .into()
                }
                _ => sliding.precision(Duration::from_secs(1)).into(),
            }
        })
    }

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn keys_are_the_same_where_their_shapes_are(one in policy(), other in policy()) {
            let [one, other] = [one, other].map(|policy| policy.spec().unwrap());
            prop_assert_eq!(one.has_keys_of(&other), one.to_string() == other.to_string());
        }
    }
}
