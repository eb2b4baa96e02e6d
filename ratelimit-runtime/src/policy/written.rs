//! Policies as the arguments of an attribute.

use std::time::Duration;

use super::Policy;
use super::fixed_window::Windows;
use super::leaky_bucket::Leak;
use super::token_bucket::BurstSize;
use crate::base::rate::Rate;
use crate::base::units;

/// The value of an argument.
pub(super) enum Written {
    Count(u64),
    /// A rate or a duration.
    Text(String),
    /// `refill = interval`.
    Word(&'static str),
    /// An argument without a value.
    Flag,
}

impl Policy {
    /// Returns the policy as the arguments of its attribute: `limit = 5, period = "1m"`. `None` if a time is no whole number of
    /// microseconds.
    pub(crate) fn arguments(&self) -> Option<String> {
        let arguments = self.written()?.into_iter().map(|(name, value)| match value {
            Written::Count(count) => format!("{name} = {count}"),
            Written::Text(text) => format!("{name} = \"{text}\""),
            Written::Word(word) => format!("{name} = {word}"),
            Written::Flag => name.to_owned(),
        });
        Some(arguments.collect::<Vec<_>>().join(", "))
    }

    /// Returns the arguments of its attribute, in their order there. `None` if a time is no whole number of microseconds.
    pub(super) fn written(&self) -> Option<Vec<(&'static str, Written)>> {
        let mut written = Vec::new();
        match self {
            Policy::TokenBucket(bucket) => {
                written.push(("rate", rate(bucket.rate)?));
                match (bucket.warmup, bucket.burst) {
                    (Some(warmup), _) => written.push(("warmup", time(warmup)?)),
                    (None, BurstSize::Permits(permits)) => written.push(("burst", Written::Count(permits))),
                    (None, BurstSize::For(worth)) => written.push(("burst", time(worth)?)),
                    (None, BurstSize::Default) => {}
                }
                written.extend(bucket.interval_refill.then_some(("refill", Written::Word("interval"))));
                written.extend(bucket.borrow.then_some(("borrow", Written::Flag)));
            }
            Policy::FixedWindow(window) => {
                written.push(("limit", Written::Count(window.limit)));
                match window.windows {
                    Windows::Opened(period) => written.push(("period", time(period)?)),
                    Windows::Aligned(period) => {
                        written.extend([("period", time(period)?), ("aligned", Written::Flag)]);
                    }
                    Windows::Calendar(calendar) => {
                        written.push(("period", Written::Text(calendar.period_name().to_owned())));
                        written.push(("zone", Written::Text(calendar.zone_name().to_owned())));
                    }
                }
            }
            Policy::LeakyBucket(bucket) => {
                written.push(("capacity", Written::Count(bucket.capacity)));
                written.push(match bucket.leak {
                    Leak::Rate(leak) => ("leak_rate", rate(leak)?),
                    Leak::Drain(drain) => ("drain", time(drain)?),
                });
                written.extend(bucket.queue.then_some(("queue", Written::Flag)));
            }
            Policy::SlidingWindow(window) => {
                written.push(("limit", Written::Count(window.limit)));
                written.push(("period", time(window.period)?));
                if let Some(precision) = window.precision {
                    written.push(("precision", time(precision)?));
                }
            }
            Policy::ConcurrencyLimit(limit) => written.push(("max", Written::Count(limit.max))),
        }
        Some(written)
    }
}

fn rate(rate: Rate) -> Option<Written> {
    units::write_rate(rate.permits, rate.period).map(Written::Text)
}

fn time(time: Duration) -> Option<Written> {
    units::write_duration(time).map(Written::Text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{ConcurrencyLimit, FixedWindow, LeakyBucket, SlidingWindow, TokenBucket};

    #[test]
    fn policies_are_written_as_arguments() {
        let (second, per_second) = (Duration::from_secs(1), Rate::per_second(3));
        let bucket = TokenBucket::new(per_second);
        let cases: [(Policy, &str); 10] = [
            (bucket.into(), "rate = \"3/s\""),
            (bucket.burst(7).into(), "rate = \"3/s\", burst = 7"),
            (bucket.burst_for(second).borrow().into(), "rate = \"3/s\", burst = \"1s\", borrow"),
            (bucket.interval_refill().into(), "rate = \"3/s\", refill = interval"),
            (bucket.warmup(second).into(), "rate = \"3/s\", warmup = \"1s\""),
            (FixedWindow::new(7, second).aligned().into(), "limit = 7, period = \"1s\", aligned"),
            (LeakyBucket::new(7, per_second).queue().into(), "capacity = 7, leak_rate = \"3/s\", queue"),
            (ConcurrencyLimit::new(7).into(), "max = 7"),
            (LeakyBucket::draining(7, second).into(), "capacity = 7, drain = \"1s\""),
            (
                SlidingWindow::new(7, second).precision(second / 2).into(),
                "limit = 7, period = \"1s\", precision = \"500ms\"",
            ),
        ];
        for (policy, arguments) in cases {
            assert_eq!(policy.arguments().as_deref(), Some(arguments));
        }
        assert_eq!(Policy::from(FixedWindow::new(7, Duration::from_nanos(1))).arguments(), None);
        #[cfg(feature = "calendar")]
        {
            let monthly = FixedWindow::calendar(7, crate::CalendarPeriod::Month);
            let arguments = Policy::from(monthly.zone("Asia/Tokyo").unwrap()).arguments();
            assert_eq!(arguments.as_deref(), Some("limit = 7, period = \"month\", zone = \"Asia/Tokyo\""));
        }
    }
}
