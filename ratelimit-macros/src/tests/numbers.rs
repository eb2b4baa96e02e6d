//! How numbers are written, and what they expand to.

use super::*;

#[test]
fn rejects_wrong_forms_of_numbers() {
    let count = "`limit` is a whole number of permits; write `limit = 10`";
    fails_with(Count, "period = 60, limit", &["5.5", "\"5\"", "5s"], count);
    let cost = "`cost` is a whole number of permits; write `cost = 10`";
    fails_with(Count, "5, 60, cost", &["\"1\"", "5s"], cost);
    let period =
        "`period` is a whole number of seconds or a string; write `period = 60` or `period = \"500ms\"`";
    fails_with(Count, "5, period", &["0.5", "15m", "1day", "15minute", "2hours"], period);
    fails_with(
        Window,
        "5, 60, precision",
        &["1", "0.5"],
        "`precision` needs a unit; write `precision = \"1s\"`",
    );
    let burst = "`burst` is a whole number of permits or a duration; write `burst = 10` or `burst = \"5s\"`";
    fails_with(Rate, "5, burst", &["2.5", "5s"], burst);
    let rate =
        "`rate` is a number of permits per second or a string; write `rate = 5.0` or `rate = \"100/min\"`";
    fails_with(Rate, "rate", &["5s", "100 / min", "1 / day"], rate);
}

#[test]
fn rejects_texts_without_units() {
    let burst = "`burst` has no unit; write `burst = 10` for permits, or `burst = \"10s\"` for what the rate gives in that time";
    fails_with(Rate, "5, burst", &["\"10\""], burst);
    let rate = "`rate` has no period; write `rate = 5.0` for permits per second, or `rate = \"100/min\"`";
    fails_with(Rate, "rate", &["\"5\"", "\"5.0\""], rate);
    let period = "`period` has no unit; write `period = 60` for seconds, or a unit: `period = \"60m\"`";
    fails_with(Count, "5, period", &["\"60\""], period);
    let precision = "`precision` has no unit; write `precision = \"1s\"` for seconds";
    fails_with(Window, "5, 60, precision", &["\"1\""], precision);
    let timeout = "`timeout` has no unit; write `timeout = \"5s\"` for seconds, or `timeout = \"5ms\"` for milliseconds";
    fails_with(Count, "5, 60, timeout", &["\"5\""], timeout);
    // Constants check all other texts.
    for timeout in ["\"0\"", "\"1m30\""] {
        expands(Rate, &format!("5, timeout = {timeout}"), SEND);
    }
    for rate in ["\"\"", "\"0\"", "\"-5\"", "\"inf\"", "\"1e999\"", "\"5/\""] {
        expands(Rate, rate, SEND);
    }
}

#[test]
fn rejects_integer_division_in_rates() {
    let message = "integer division drops the fraction; write `rate = 1.0 / 60.0` or `rate = \"1/min\"`";
    fails_with(Rate, "rate", &["1 / 60", "-(1 / 60)", "2 * 1 / 60"], message);
    expands(Rate, "5.0 / 60.0", SEND);
    expands(Rate, "5.0 / s", "async fn f(s: f64) -> Result<(), E> {}");
}

#[test]
fn funnel_takes_one_leak() {
    let message = "`drain` and `leak_rate` set the same number; leave out one of them";
    fails(Funnel, "5, 1.0, drain = 60", &[("drain", message)]);
}

#[test]
fn interval_refill_needs_a_period() {
    let message = "`refill = interval` needs a rate with a period; write `rate = \"100/min\"`";
    fails(Rate, "5, refill = interval", &[("5", message)]);
    let message = "expected `interval`; leave out `refill` for continuous refill";
    fails_with(Rate, "\"5/s\", refill", &["greedy", "\"interval\""], message);
    expands(Rate, "\"5/s\", refill = interval", SEND);
    expands(Rate, "RATE, refill = interval", SEND);
}

#[test]
fn literals_become_one_constant() {
    let expanded = expands(Count, "2 * 50, \"1d\", aligned", SEND);
    let policy = "FixedWindow :: new (__ratelimits :: const_args :: count (\"limit\" , 2 * 50) , \
                  __ratelimits :: const_args :: duration (\"period\" , \"1d\")) . aligned ()";
    assert!(expanded.contains(policy), "{expanded}");
    assert!(expanded.contains("computed : & []"), "{expanded}");
    let suffixed = expands(Count, "10u8, -5", SEND);
    assert!(suffixed.contains("(\"limit\" , (10u8) as :: core :: primitive :: i128)"), "{suffixed}");
}

#[test]
fn other_numbers_are_evaluated_per_call() {
    let expanded = expands(Count, "user.limit, \"1d\"", SEND);
    let computed = "let ratelimits_limit = __ratelimits :: runtime_args :: count (\"limit\" , user . limit)";
    assert!(expanded.contains(computed), "{expanded}");
    assert!(expanded.contains("const PERIOD : :: core :: time :: Duration"), "{expanded}");
    assert!(expanded.contains("FixedWindow :: new (ratelimits_limit ? , PERIOD)"), "{expanded}");
    assert!(expanded.contains("computed : & [\"limit\"]"), "{expanded}");
    let named = expands(Count, "LIMIT, PERIOD", SEND);
    assert!(named.contains("runtime_args :: period (\"period\" , PERIOD)"), "{named}");
}

/// Returns the literals that are checked beside computed numbers.
fn checked(kind: AttributeKind, args: &str) -> Vec<String> {
    let expanded = expands(kind, args, SEND);
    let checks = expanded.split("check (& ratelimits_policy , \"").skip(1);
    checks.map(|rest| rest.split('"').next().unwrap().to_owned()).collect()
}

#[test]
fn literals_after_computed_numbers_are_not_checked() {
    for (kind, args, expected) in [
        (Rate, "5, 10", &["rate", "burst"][..]),
        (Rate, "5, user.burst", &["rate"]),
        (Rate, "user.rate, 10", &[]),
        (Rate, "5, warmup = user.warmup", &["rate"]),
        (Count, "5, user.period", &["limit"]),
        (Count, "user.limit, 60", &["period"]),
        (Funnel, "5, user.rate", &[]),
        (Funnel, "user.capacity, 5", &["leak_rate"]),
        (Window, "user.limit, 60, precision = \"1s\"", &["period", "precision"]),
        (Window, "5, user.period, precision = \"1s\"", &["limit"]),
    ] {
        assert_eq!(checked(kind, args), expected, "{args}");
    }
}

#[test]
fn costs_of_zero_are_errors() {
    let message = "a call that costs 0 passes without a decision; leave out the attribute, or write `skip_when = …` for calls that are free";
    for kind in [Rate, Count, Funnel, Window] {
        fails_with(kind, "5, 60, cost", &["0", "0_u64", "00"], message);
    }
    expands(Rate, "5, cost = 10", SEND);
    expands(Rate, "5, cost = user.cost", SEND);
}
