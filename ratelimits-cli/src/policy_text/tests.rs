use std::time::Duration;

use ratelimit_runtime::{
    CalendarPeriod, ConcurrencyLimit, FixedWindow, LeakyBucket, Rate, SlidingWindow, TokenBucket,
};

use super::*;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);

fn parse(text: &str) -> PolicyText {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn error(text: &str) -> String {
    text.parse::<PolicyText>().err().unwrap_or_else(|| panic!("no error: {text}")).to_string()
}

fn rate(text: &str) -> Rate {
    Rate::parse(text).unwrap()
}

#[test]
fn attributes_are_policies() {
    let cases: [(&str, Policy); 24] = [
        (r#"rate_limit(rate = "100/min", burst = 20)"#, TokenBucket::new(rate("100/min")).burst(20).into()),
        ("rate_limit(5.0)", TokenBucket::per_second(5).into()),
        ("rate_limit(5, 10)", TokenBucket::per_second(5).burst(10).into()),
        ("rate_limit(5, 10,)", TokenBucket::per_second(5).burst(10).into()),
        (r#"rate_limit(5, burst = "5s")"#, TokenBucket::per_second(5).burst_for(5 * MINUTE / 60).into()),
        ("rate_limit(rate = 1.0 / 60.0)", TokenBucket::new(rate("1/min")).into()),
        ("rate_limit(rate = 2 * (3 + 4) - -1)", TokenBucket::per_second(15).into()),
        ("rate_limit(burst = 10u32 / 2, rate = 5u8)", TokenBucket::per_second(5).burst(5).into()),
        ("rate_limit(rate = 5, borrow)", TokenBucket::per_second(5).borrow().into()),
        (
            r#"rate_limit(rate = "5/min", refill = interval)"#,
            TokenBucket::new(rate("5/min")).interval_refill().into(),
        ),
        (r#"rate_limit(rate = 5, warmup = "1m")"#, TokenBucket::per_second(5).warmup(MINUTE).into()),
        (r#"count_limit(100, "1h")"#, FixedWindow::new(100, HOUR).into()),
        (
            r#"#[count_limit(limit = 100, period = 3600, aligned)]"#,
            FixedWindow::new(100, HOUR).aligned().into(),
        ),
        (
            r#"count_limit(100, zone = "Asia/Tokyo", period = "month")"#,
            FixedWindow::calendar(100, CalendarPeriod::Month).zone("Asia/Tokyo").unwrap().into(),
        ),
        (" # [ ratelimits::count_limit( 100 ,\n \"1h\" ) ] ", FixedWindow::new(100, HOUR).into()),
        ("funnel_limit(capacity = 5, leak_rate = 5.0)", LeakyBucket::new(5, rate("5/s")).into()),
        (r#"funnel_limit(5, "1/s", queue)"#, LeakyBucket::new(5, rate("1/s")).queue().into()),
        (r#"funnel_limit(5, drain = "1m")"#, LeakyBucket::draining(5, MINUTE).into()),
        (r#"window_limit(100, "1m")"#, SlidingWindow::new(100, MINUTE).into()),
        (
            r#"window_limit(100, 60, precision = "1s")"#,
            SlidingWindow::new(100, MINUTE).precision(MINUTE / 60).into(),
        ),
        (r#"window_limit(50 + 50, 60 * 60)"#, SlidingWindow::new(100, HOUR).into()),
        ("concurrency_limit(20, key = provider)", ConcurrencyLimit::new(20).into()),
        ("#[concurrency_limit(max = 4 * 5)]", ConcurrencyLimit::new(20).into()),
        (r##"count_limit(limit = 100, period = r#"1h"#)"##, FixedWindow::new(100, HOUR).into()),
    ];
    for (text, policy) in cases {
        assert_eq!(parse(text).policy, policy, "{text}");
    }
}

#[test]
fn arguments_without_meaning_for_the_numbers_are_listed() {
    let text = r#"#[rate_limit(rate = 5.0, key = "<user.id>", key_type = CUSTOM, timeout = "1s", shadow,
        fallback = |error| Err(error), skip_when = user.is_admin(), crate = ::renamed, lease = 10, slack = "1%")]"#;
    let ignored =
        ["key", "key_type", "timeout", "shadow", "fallback", "skip_when", "crate", "lease", "slack"];
    assert_eq!(parse(text).ignored, ignored);
    assert_eq!(parse("rate_limit(rate = 5.0, burst = 5, borrow)").ignored, [""; 0]);
}

#[test]
fn names_and_costs_are_read() {
    let named = parse(r#"rate_limit(rate = 5.0, name = "sms.send", cost = 2)"#);
    assert_eq!((named.label.as_str(), named.cost), ("sms.send", Some(2)));
    assert!(named.ignored.is_empty());
    let unnamed = parse("#[rate_limit(\n    rate = 5.0,\n    burst = 10,\n)]");
    assert_eq!((unnamed.label.as_str(), unnamed.cost), ("rate_limit(rate = 5.0, burst = 10)", Some(1)));
    assert_eq!(parse("rate_limit(rate = 5.0, cost = rows.len())").cost, None);
    assert_eq!(parse("rate_limit(rate = 5.0, cost = rows)").cost, None);
}

#[test]
fn invalid_policies_are_errors() {
    for (text, message) in [
        ("", "expected identifier; write a policy like"),
        ("100/min", "expected identifier; write a policy like"),
        ("rate_limit", "expected parentheses; write a policy like"),
        ("rate_limit(", "write a policy like `rate_limit("),
        ("ratelimit(5)", "unknown attribute `ratelimit`; did you mean `rate_limit`?"),
        ("TokenBucket(5)", "unknown attribute `TokenBucket`; write one of `rate_limit`, `count_limit`,"),
        (
            "rate_limit(5) count_limit(5)",
            "unexpected text after the policy; write each policy as an argument",
        ),
        ("rate_limit()", "missing argument `rate`; write `rate = \"100/min\"`"),
        ("count_limit(100)", "missing argument `period`; write `period = \"1m\"`"),
        ("count_limit(period = 100)", "missing argument `limit`; write `limit = 100`"),
        ("funnel_limit(100)", "missing argument `leak_rate`;"),
        ("funnel_limit(5, 5.0, drain = \"1m\")", "`drain` and `leak_rate` set the same number;"),
        ("rate_limit(rates = 5)", "unknown argument `rates`; did you mean `rate`?"),
        ("rate_limit(5, borow)", "unknown argument `borow`; did you mean `borrow`?"),
        (
            "count_limit(5, 60, queue)",
            "unknown argument `queue`; the arguments of `count_limit` are `limit`,",
        ),
        ("rate_limit(rate)", "`rate` needs a value; write `rate = …`"),
        ("rate_limit(rate = )", "`rate` needs a value; write `rate = …`"),
        ("rate_limit(5, borrow = true)", "`borrow` takes no value; write `borrow`,"),
        ("rate_limit(5, rate = 5)", "`rate` is specified more than once;"),
        ("rate_limit(5, 5, 5)", "only `rate` and `burst` may be positional,"),
        ("rate_limit(burst = 5, 5)", "only `rate` and `burst` may be positional,"),
        ("rate_limit(5 burst = 5)", "expected `,`; arguments are written like"),
        ("rate_limit(5, refill = continuous)", "`refill` is `interval`; leave it out for continuous refill"),
        ("rate_limit(5, refill = interval)", "`rate` needs a period with `refill = interval`;"),
        (
            "rate_limit(rate = user.plan)",
            "`rate` is computed, and only the program knows its value; write `rate =",
        ),
        ("rate_limit(rate = RATE)", "`rate` is computed,"),
        ("rate_limit(rate = 2.0 * FACTOR)", "`rate` is computed,"),
        ("rate_limit(rate = 100/min)", "`rate` has a unit without quotes, which a shell removes unless"),
        ("count_limit(100, 1h)", "`period` has a unit without quotes,"),
        ("count_limit(100, 1h30m)", "`period` has a unit without quotes,"),
        ("rate_limit(rate = 1 / 60)", "`rate` is an integer division, which drops the fraction;"),
        ("rate_limit(rate = 2 * (1 / 60))", "`rate` is an integer division,"),
        ("rate_limit(rate = 1 / 0)", "`rate` divides by zero;"),
        ("rate_limit(rate = 1.0 / 60)", "`rate` mixes whole numbers and fractions;"),
        ("rate_limit(rate = 1.0 / 0.0)", "`rate` is infinite;"),
        ("rate_limit(rate = -5)", "`rate` is negative;"),
        ("rate_limit(rate = \"5/s\" + 1)", "`rate` is text, with which there is no arithmetic;"),
        ("rate_limit(rate = 99999999999999999999999999999999999999999)", "`rate` is too large;"),
        ("rate_limit(rate = 170141183460469231731687303715884105727 * 2)", "`rate` is too large;"),
        ("rate_limit(rate = 5, burst = 5.0)", "`burst` is a whole number of permits or a duration;"),
        ("rate_limit(rate = 5, burst = 0)", "`burst` is 0, which admits nothing; write at least 1"),
        ("rate_limit(rate = 5, burst = 5, warmup = 5)", "`burst` cannot be combined with `warmup`,"),
        ("window_limit(100, 60, precision = \"7s\")", "`precision` does not divide the period"),
        ("rate_limit(rate = 5, cost = -1)", "`cost` is negative or too large; write `cost = 2`"),
        ("rate_limit(rate = 5, cost = 1.5)", "`cost` is not a whole number of permits; write `cost = 2`"),
        ("rate_limit(rate = 5, cost = \"2\")", "`cost` is not a whole number of permits;"),
    ] {
        let error = error(text);
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn the_size_of_a_policy_is_bounded() {
    let nested = |depth: usize| format!("rate_limit(5, burst = {}5{})", "(".repeat(depth), ")".repeat(depth));
    assert_eq!(parse(&nested(31)).policy, TokenBucket::per_second(5).burst(5).into());
    assert!(error(&nested(32)).starts_with("the policy nests more than 32 brackets; write a policy like"));
    assert!(error(&nested(20_000)).starts_with("the policy has more than 1000 characters; write a policy"));
    // Operators nest as well.
    for operator in
        ["<", "A::<", "||", "move ||", "-", "!", "&", "x = ", "x as &", "if x {} else ", "1 + ", "a."]
    {
        let text = format!("rate_limit(5, cost = {}", operator.repeat(950 / operator.len()));
        assert!(error(&format!("{text})")).contains("write a policy like"), "{operator}");
    }
}
