use super::ArgumentValue::{Float, Integer, Text};
use super::*;
use crate::policy::{FixedWindow, LeakyBucket, SlidingWindow, TokenBucket};

const MINUTE: Duration = Duration::from_secs(60);

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

fn error(policy: impl Into<Policy>, argument: &str, value: ArgumentValue<'_>) -> String {
    policy.into().with_argument(argument, value).unwrap_err().to_string()
}

#[test]
fn numbers_change_by_name() {
    let bucket = TokenBucket::per_second(5);
    let interval = TokenBucket::new(rate("5/min")).interval_refill();
    let warming_up = bucket.warmup(MINUTE);
    let window = FixedWindow::new(5, MINUTE).aligned();
    let leaky = LeakyBucket::new(5, rate("5/s")).queue();
    let log = SlidingWindow::new(5, MINUTE);
    let counter = log.precision(Duration::from_secs(1));
    let second = Duration::from_secs(1);
    let cases: [(Policy, &str, ArgumentValue<'_>, Policy); 19] = [
        (bucket.into(), "rate", Integer(7), TokenBucket::per_second(7).into()),
        (bucket.into(), "rate", Float(1.0 / 60.0), TokenBucket::new(rate("1/min")).into()),
        (bucket.borrow().into(), "rate", Text("7/min"), TokenBucket::new(rate("7/min")).borrow().into()),
        (bucket.burst(3).into(), "rate", Integer(7), TokenBucket::per_second(7).burst(3).into()),
        (interval.into(), "rate", Text("7/h"), TokenBucket::new(rate("7/h")).interval_refill().into()),
        (bucket.into(), "burst", Integer(9), bucket.burst(9).into()),
        (bucket.burst(3).into(), "burst", Text("1m"), bucket.burst_for(MINUTE).into()),
        (warming_up.into(), "warmup", Text("1s"), bucket.warmup(second).into()),
        (warming_up.into(), "warmup", Integer(1), bucket.warmup(second).into()),
        (window.into(), "limit", Integer(9), FixedWindow::new(9, MINUTE).aligned().into()),
        (window.into(), "period", Integer(1), FixedWindow::new(5, second).aligned().into()),
        (window.into(), "period", Text("1s"), FixedWindow::new(5, second).aligned().into()),
        (leaky.into(), "capacity", Integer(9), LeakyBucket::new(9, rate("5/s")).queue().into()),
        (leaky.into(), "leak_rate", Text("1/h"), LeakyBucket::new(5, rate("1/h")).queue().into()),
        (leaky.into(), "drain", Text("1m"), LeakyBucket::draining(5, MINUTE).queue().into()),
        (
            LeakyBucket::draining(5, MINUTE).into(),
            "leak_rate",
            Float(5.0),
            LeakyBucket::new(5, rate("5/s")).into(),
        ),
        (log.into(), "limit", Integer(9), SlidingWindow::new(9, MINUTE).into()),
        (counter.into(), "period", Text("2m"), SlidingWindow::new(5, 2 * MINUTE).precision(second).into()),
        (counter.into(), "precision", Text("2s"), log.precision(2 * second).into()),
    ];
    for (policy, argument, value, expected) in cases {
        assert_eq!(policy.with_argument(argument, value), Ok(expected), "{argument} = {value:?}");
    }
}

#[test]
fn every_number_can_change() {
    let second = Duration::from_secs(1);
    let policies: [Policy; 4] = [
        TokenBucket::per_second(5).warmup(MINUTE).into(),
        FixedWindow::new(5, MINUTE).into(),
        LeakyBucket::new(5, rate("5/s")).into(),
        SlidingWindow::new(5, MINUTE).precision(second).into(),
    ];
    for policy in policies {
        for number in policy.algorithm().attribute().numbers() {
            let takes = |value| policy.with_argument(number, value).is_ok();
            assert!(takes(Integer(5)) || takes(Text("1s")), "{number} of {policy:?}");
        }
    }
}

#[test]
fn defaults_follow_the_changed_number() {
    let max_cost = |policy: Policy| policy.spec().unwrap().max_cost();
    let bucket = Policy::from(TokenBucket::per_second(5));
    assert_eq!(max_cost(bucket.with_argument("rate", Integer(50)).unwrap()), Some(50));
    let interval = Policy::from(TokenBucket::new(rate("5/min")).interval_refill());
    assert_eq!(max_cost(interval.with_argument("rate", Text("70/min")).unwrap()), Some(70));
}

#[test]
fn numbers_that_change_together_are_checked_together() {
    let policy = Policy::from(SlidingWindow::new(5, MINUTE).precision(Duration::from_secs(1)));
    let changed = policy.with_argument("precision", Text("7s")).unwrap();
    assert_eq!(changed.check().unwrap_err().argument(), "precision");
    changed.with_argument("period", Text("70s")).unwrap().check().unwrap();

    let zero = policy.with_argument("limit", Integer(0)).unwrap();
    assert_eq!(zero.check().unwrap_err().argument(), "limit");
    let both = Policy::from(TokenBucket::per_second(5).warmup(MINUTE)).with_argument("burst", Integer(5));
    assert_eq!(both.unwrap().check().unwrap_err().argument(), "burst");
}

#[test]
fn invalid_values_are_errors() {
    let bucket = TokenBucket::per_second(5);
    let warming_up = bucket.warmup(MINUTE);
    let window = FixedWindow::new(5, MINUTE);
    let leaky = LeakyBucket::new(5, rate("5/s"));
    let counter = SlidingWindow::new(5, MINUTE).precision(Duration::from_secs(1));
    let cases: [(Policy, &str, ArgumentValue<'_>, &str); 19] = [
        (bucket.into(), "rate", Text("100"), "is not a rate;"),
        (bucket.into(), "rate", Integer(-1), "is negative; write permits per second"),
        (bucket.into(), "rate", Float(-1.0), "is not above zero;"),
        (bucket.into(), "rate", Float(f64::NAN), "is not a number;"),
        (bucket.interval_refill().into(), "rate", Integer(5), "needs a period with `refill = interval`;"),
        (bucket.interval_refill().into(), "rate", Float(5.0), "needs a period with `refill = interval`;"),
        (
            bucket.into(),
            "burst",
            Float(10.0),
            "is a whole number of permits or a duration; write 10 or \"5s\"",
        ),
        (bucket.into(), "burst", Text("10"), "is a whole number of permits or a duration; write 10"),
        (bucket.into(), "burst", Integer(-10), "is negative;"),
        (bucket.into(), "warmup", Text("5s"), "cannot be added by changing numbers,"),
        (warming_up.into(), "warmup", Float(5.0), "is a whole number of seconds or a string;"),
        (window.into(), "limit", Text("5"), "is a whole number of permits;"),
        (window.into(), "limit", Float(5.0), "is a whole number of permits;"),
        (window.into(), "limit", Integer(i128::MAX), "is too large;"),
        (window.into(), "period", Text("1 month"), "is not a duration;"),
        (leaky.into(), "leak_rate", Text("fast"), "is not a rate;"),
        (leaky.into(), "drain", Integer(-5), "is negative;"),
        (counter.into(), "precision", Integer(1), "needs a unit; write \"1s\""),
        (
            SlidingWindow::new(5, MINUTE).into(),
            "precision",
            Text("1s"),
            "cannot be added by changing numbers,",
        ),
    ];
    for (policy, argument, value, problem) in cases {
        let error = error(policy, argument, value);
        assert!(error.starts_with(&format!("`{argument}` {problem}")), "{error}");
    }
}

#[test]
fn other_arguments_are_errors() {
    let bucket = TokenBucket::per_second(5);
    for argument in ["key", "refill", "borrow", "shadow", "cost", "lease"] {
        assert_eq!(
            error(bucket, argument, Integer(5)),
            format!(
                "`{argument}` is no number; only the numbers of `rate_limit` can change: `rate`, `burst` and `warmup`"
            )
        );
    }
    assert_eq!(
        error(bucket, "limit", Integer(5)),
        "`limit` is no argument of `rate_limit`; its numbers are `rate`, `burst` and `warmup`"
    );
    assert_eq!(
        error(FixedWindow::new(5, MINUTE), "limits", Integer(5)),
        "`count_limit` has no such argument; did you mean `limit`? Its numbers are `limit` and `period`"
    );
    // What a time zone changes is no number either.
    assert_eq!(
        error(FixedWindow::new(5, MINUTE), "zone", Text("UTC")),
        "`zone` is no number; only the numbers of `count_limit` can change: `limit` and `period`"
    );
    assert_eq!(
        error(LeakyBucket::new(5, rate("5/s")), "", Integer(5)),
        "`funnel_limit` has no such argument; its numbers are `capacity`, `leak_rate` and `drain`"
    );
}
