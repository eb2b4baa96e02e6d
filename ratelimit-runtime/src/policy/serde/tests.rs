//! What is written is read again, and what fits no policy is an error.

use std::time::Duration;

use serde_json::{from_str, to_string};

use super::*;
use crate::policy::{ConcurrencyLimit, FixedWindow, LeakyBucket, SlidingWindow, TokenBucket};

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn policies_are_read_as_they_are_written() {
    let bucket = TokenBucket::new(Rate::new(100, 60 * SECOND));
    let policies: [Policy; 15] = [
        bucket.into(),
        bucket.burst(7).into(),
        bucket.burst_for(SECOND).borrow().into(),
        bucket.interval_refill().into(),
        bucket.warmup(SECOND).into(),
        bucket.burst(7).adjustable().into(),
        bucket.burst(7).settled().into(),
        FixedWindow::new(7, SECOND).into(),
        FixedWindow::new(7, 90 * SECOND).aligned().into(),
        LeakyBucket::new(7, Rate::per_second(3)).queue().into(),
        LeakyBucket::draining(7, SECOND).adjustable().into(),
        LeakyBucket::draining(7, SECOND).settled().into(),
        ConcurrencyLimit::new(7).into(),
        SlidingWindow::new(7, SECOND).into(),
        SlidingWindow::new(7, SECOND).precision(SECOND / 2).into(),
    ];
    let policies = policies.into_iter();
    #[cfg(feature = "calendar")]
    let policies = {
        let monthly = FixedWindow::calendar(7, crate::CalendarPeriod::Month);
        policies.chain([monthly.into(), monthly.zone("Asia/Tokyo").unwrap().into()])
    };
    for policy in policies {
        let text = to_string(&policy).unwrap();
        assert_eq!(from_str::<Policy>(&text).unwrap(), policy, "{text}");
    }
    assert!(to_string(&Policy::from(FixedWindow::new(7, Duration::from_nanos(1)))).is_err());
}

#[test]
fn policies_are_read_in_the_spellings_of_attributes() {
    let policy = |text| from_str::<Policy>(text).unwrap();
    let window = r#"{"period": 60, "limit": 5, "aligned": false, "algorithm": "fixed window"}"#;
    assert_eq!(policy(window), FixedWindow::new(5, 60 * SECOND).into());
    let bucket = r#"{"algorithm": "token bucket", "rate": 0.5, "burst": "10s"}"#;
    let semaphore = policy(r#"{"algorithm": "semaphore", "max": 20}"#);
    assert_eq!(semaphore, ConcurrencyLimit::new(20).into());
    assert_eq!(to_string(&semaphore).unwrap(), r#"{"algorithm":"semaphore","max":20}"#);
    let half = Rate::new(1, 2 * SECOND);
    assert_eq!(policy(bucket), TokenBucket::new(half).burst_for(10 * SECOND).into());
}

#[test]
fn invalid_policies_are_errors() {
    for (entries, problem) in [
        (r#""rate": 5"#, "`algorithm` is missing or not known"),
        (r#""algorithm": "bucket", "rate": 5"#, "`algorithm` is missing or not known"),
        (r#""algorithm": "token bucket""#, "`rate` is missing"),
        (r#""algorithm": "token bucket", "rate": "fast""#, "`rate` is not a rate"),
        (r#""algorithm": "token bucket", "rate": true"#, "`rate` is a number"),
        (r#""algorithm": "token bucket", "rate": 5, "limit": 5"#, "`limit` is no argument of `rate_limit`"),
        (r#""algorithm": "token bucket", "rate": 5, "burts": 5"#, "did you mean `burst`"),
        (r#""algorithm": "token bucket", "rate": 5, "queue": true"#, "`queue`"),
        (r#""algorithm": "token bucket", "rate": "5/s", "refill": "now""#, "`refill`"),
        (r#""algorithm": "token bucket", "rate": 5, "rate": 6"#, "`rate` is there twice"),
        (r#""algorithm": "fixed window", "limit": 0, "period": 60"#, "`limit` is 0"),
        (r#""algorithm": "fixed window", "limit": 5, "period": 60, "adjustable": true"#, "`adjustable`"),
        (r#""algorithm": "semaphore", "max": 0"#, "`max` is 0"),
        (r#""algorithm": "semaphore", "max": 5, "adjustable": true"#, "`adjustable`"),
        (r#""algorithm": "semaphore", "limit": 5"#, "`limit` is no argument of `concurrency_limit`"),
        (r#""algorithm": "leaky bucket", "capacity": 5"#, "`leak_rate` is missing"),
        (r#""algorithm": "leaky bucket", "capacity": 5, "leak_rate": 1, "drain": 5"#, "leave out one"),
    ] {
        let error = from_str::<Policy>(&format!("{{{entries}}}")).unwrap_err().to_string();
        assert!(error.contains(problem), "{entries}: {error}");
    }
}

#[test]
fn rates_are_texts_or_permits_per_second() {
    let rate = Rate::new(100, 60 * SECOND);
    assert_eq!(to_string(&rate).unwrap(), r#""100/min""#);
    for (text, read) in
        [(r#""100/min""#, rate), ("5", Rate::per_second(5)), ("0.5", Rate::new(1, 2 * SECOND))]
    {
        assert_eq!(from_str::<Rate>(text).unwrap(), read);
    }
    assert!(from_str::<Rate>("-1").is_err() && from_str::<Rate>("true").is_err());
}
