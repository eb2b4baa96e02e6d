//! Policies as the arguments of an attribute.

use std::time::Duration;

use super::Policy;
use super::leaky_bucket::Leak;
use super::token_bucket::BurstSize;
use crate::base::rate::Rate;

impl Policy {
    /// Returns the policy as the arguments of its attribute: `limit = 5, period = "60000000us"`. `None` if a time is no whole number
    /// of microseconds.
    pub(crate) fn arguments(&self) -> Option<String> {
        let arguments = match self {
            Policy::TokenBucket(bucket) => {
                let rate = format!("rate = {}", rate(bucket.rate)?);
                let flags = [(bucket.interval_refill, "refill = interval"), (bucket.borrow, "borrow")];
                let flags = flags.into_iter().filter(|(is_set, _)| *is_set).map(|(_, flag)| flag.to_owned());
                let size = match (bucket.warmup, bucket.burst) {
                    (Some(warmup), _) => Some(format!("warmup = {}", time(warmup)?)),
                    (None, BurstSize::Permits(permits)) => Some(format!("burst = {permits}")),
                    (None, BurstSize::For(worth)) => Some(format!("burst = {}", time(worth)?)),
                    (None, BurstSize::Default) => None,
                };
                [rate].into_iter().chain(size).chain(flags).collect::<Vec<_>>()
            }
            Policy::FixedWindow(window) => {
                let aligned = window.aligned.then(|| "aligned".to_owned());
                let numbers =
                    [format!("limit = {}", window.limit), format!("period = {}", time(window.period)?)];
                numbers.into_iter().chain(aligned).collect()
            }
            Policy::LeakyBucket(bucket) => {
                let leak = match bucket.leak {
                    Leak::Rate(leak) => format!("leak_rate = {}", rate(leak)?),
                    Leak::Drain(drain) => format!("drain = {}", time(drain)?),
                };
                let queue = bucket.queue.then(|| "queue".to_owned());
                [format!("capacity = {}", bucket.capacity), leak].into_iter().chain(queue).collect()
            }
            Policy::SlidingWindow(window) => {
                let numbers =
                    [format!("limit = {}", window.limit), format!("period = {}", time(window.period)?)];
                let precision = match window.precision {
                    Some(precision) => Some(format!("precision = {}", time(precision)?)),
                    None => None,
                };
                numbers.into_iter().chain(precision).collect::<Vec<_>>()
            }
        };
        Some(arguments.join(", "))
    }
}

fn rate(rate: Rate) -> Option<String> {
    Some(format!("\"{}/{}us\"", rate.permits, micros(rate.period)?))
}

fn time(time: Duration) -> Option<String> {
    Some(format!("\"{}us\"", micros(time)?))
}

fn micros(time: Duration) -> Option<u128> {
    time.subsec_nanos().is_multiple_of(1000).then_some(time.as_micros())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::{FixedWindow, LeakyBucket, SlidingWindow, TokenBucket};

    #[test]
    fn policies_are_written_as_arguments() {
        let (second, per_second) = (Duration::from_secs(1), Rate::per_second(3));
        let bucket = TokenBucket::new(per_second);
        let cases: [(Policy, &str); 9] = [
            (bucket.into(), "rate = \"3/1000000us\""),
            (bucket.burst(7).into(), "rate = \"3/1000000us\", burst = 7"),
            (
                bucket.burst_for(second).borrow().into(),
                "rate = \"3/1000000us\", burst = \"1000000us\", borrow",
            ),
            (bucket.interval_refill().into(), "rate = \"3/1000000us\", refill = interval"),
            (bucket.warmup(second).into(), "rate = \"3/1000000us\", warmup = \"1000000us\""),
            (FixedWindow::new(7, second).aligned().into(), "limit = 7, period = \"1000000us\", aligned"),
            (
                LeakyBucket::new(7, per_second).queue().into(),
                "capacity = 7, leak_rate = \"3/1000000us\", queue",
            ),
            (LeakyBucket::draining(7, second).into(), "capacity = 7, drain = \"1000000us\""),
            (
                SlidingWindow::new(7, second).precision(second / 2).into(),
                "limit = 7, period = \"1000000us\", precision = \"500000us\"",
            ),
        ];
        for (policy, arguments) in cases {
            assert_eq!(policy.arguments().as_deref(), Some(arguments));
        }
        assert_eq!(Policy::from(FixedWindow::new(7, Duration::from_nanos(1))).arguments(), None);
    }
}
