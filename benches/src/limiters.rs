//! Limiters of ours and of governor: some that never refuse, because their buckets hold days' worth of calls, and some that
//! refuse all calls of a key but the first.

use std::num::NonZeroU32;
use std::time::Duration;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use ratelimits::{Limiter, Rate, Registry, TokenBucket};

pub(crate) fn admitting(name: &str) -> Limiter {
    limiter(name, admitting_policy())
}

/// The same as in `functions.rs`: a permit is a microsecond, and the bucket holds 11 days of them.
pub(crate) fn admitting_policy() -> TokenBucket {
    TokenBucket::per_second(1_000_000).burst(1_000_000_000_000)
}

pub(crate) fn refusing(name: &str) -> Limiter {
    limiter(name, TokenBucket::new(hourly()).burst(1))
}

pub(crate) fn hourly() -> Rate {
    Rate::new(1, Duration::from_secs(3600))
}

pub(crate) fn governor_admitting<K: std::hash::Hash + Eq + Clone>() -> DefaultKeyedRateLimiter<K> {
    RateLimiter::keyed(governor_quota())
}

pub(crate) fn governor_refusing<K: std::hash::Hash + Eq + Clone>() -> DefaultKeyedRateLimiter<K> {
    RateLimiter::keyed(Quota::per_hour(number(1)))
}

/// A permit is a nanosecond, and the bucket holds seconds of them, which is the most that it can.
pub(crate) fn governor_quota() -> Quota {
    Quota::per_second(number(1_000_000_000)).allow_burst(number(4_000_000_000))
}

fn limiter(name: &str, policy: TokenBucket) -> Limiter {
    Registry::in_memory().limiter(name, policy).expect("the policy is valid")
}

fn number(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("not zero")
}
