//! How long a call waits, and for what: `timeout`, `queue`, `borrow`, `warmup`.

use super::*;

#[test]
fn timeouts() {
    for kind in [Rate, Count, Funnel, Window] {
        let of = |timeout: &str| expands(kind, &format!("5, 60, timeout = {timeout}"), SEND);
        for text in ["\"200ms\"", "\"forever\"", "\"1h30m\""] {
            let written = format!(
                "const TIMEOUT : :: core :: time :: Duration = __ratelimits :: literal :: timeout ({text})"
            );
            assert!(of(text).contains(&written), "{}", of(text));
        }
        assert!(of("user.patience").contains("dynamic :: timeout (user . patience)"));
        assert!(of("Duration::MAX").contains("dynamic :: timeout (Duration :: MAX)"));
    }
}

#[test]
fn timeouts_without_a_unit() {
    for kind in [Rate, Count, Funnel, Window] {
        for (written, told) in [
            ("200", "`timeout` has no unit; write `timeout = \"200s\"` or `timeout = \"200ms\"`"),
            ("2u64", "`timeout` has no unit; write `timeout = \"2s\"` or `timeout = \"2ms\"`"),
            ("2 * 60", "`timeout` has no unit; write `timeout = \"5s\"` or `timeout = \"5ms\"`"),
            ("\"200\"", "`timeout` has no unit; write `timeout = \"200s\"` or `timeout = \"200ms\"`"),
            ("0.2", "`timeout` has no unit; write `timeout = \"200ms\"`"),
            ("1.5f64", "`timeout` has no unit; write `timeout = \"1500ms\"`"),
            ("3.0", "`timeout` has no unit; write `timeout = \"3s\"`"),
            ("0.5 * 4.0", "`timeout` has no unit; write `timeout = \"5s\"` or `timeout = \"5ms\"`"),
            ("None", "`None` is no time to wait; leave `timeout` out"),
            ("200ms", "a number with a time is a string; write `timeout = \"200ms\"`"),
            ("forever", "`forever` is a string; write `timeout = \"forever\"`"),
        ] {
            fails(kind, &format!("5, 60, timeout = {written}"), &[(written, told)]);
        }
        let negative =
            "`timeout` is negative; write a time to wait, `timeout = \"200ms\"`, or `timeout = \"forever\"`";
        for written in ["-1", "-0.5", "-1i64"] {
            fails(kind, &format!("5, 60, timeout = {written}"), &[(written, negative)]);
        }
        fails(kind, "5, 60, timeout", &[("timeout", "`timeout` needs a value; write `timeout = …`")]);
    }
    expands(
        Rate,
        "5, timeout = forever",
        "async fn send(forever: Duration) -> Result<(), AppError> { Ok(()) }",
    );
    expands(Rate, "5, timeout = limits::forever", SEND);
}

#[test]
fn a_shadow_never_waits() {
    for args in ["5, 60, shadow, timeout = \"1s\"", "5, 60, timeout = \"1s\", shadow"] {
        fails(Count, args, &[("timeout", "a policy in `shadow` never waits; leave out `timeout`")]);
    }
}

#[test]
fn without_a_timeout_only_a_queue_waits() {
    for (kind, args, most) in [
        (Rate, "5, borrow", "ZERO"),
        (Rate, "5, warmup = 3", "ZERO"),
        (Count, "5, 60", "ZERO"),
        (Funnel, "5, 60", "ZERO"),
        (Funnel, "5, 60, queue", "MAX"),
        (Funnel, "5, 60, queue, shadow", "MAX"),
        (Window, "5, 60", "ZERO"),
    ] {
        let expanded = expands(kind, args, SEND);
        assert_eq!(expanded.matches("Duration :: MAX").count(), usize::from(most == "MAX"), "{args}");
        assert_eq!(expanded.matches("Duration :: ZERO").count(), usize::from(most == "ZERO"), "{args}");
    }
    let bounded = expands(Funnel, "5, 60, queue, timeout = \"1s\"", SEND);
    assert!(!bounded.contains("MAX") && bounded.contains("literal :: timeout (\"1s\")"), "{bounded}");
}

#[test]
fn queues() {
    let constant = expands(Funnel, "5, 2.0, queue", SEND);
    assert!(constant.contains("LeakyBucket :: new (CAPACITY , LEAK_RATE) . queue ()"), "{constant}");
    assert!(constant.contains("\"leaky bucket that queues\""), "{constant}");
    let draining = expands(Funnel, "5, drain = \"1m\", queue", SEND);
    assert!(draining.contains("LeakyBucket :: draining (CAPACITY , DRAIN) . queue ()"), "{draining}");
    let computed = expands(Funnel, "user.room, 2.0, queue", SEND);
    assert!(computed.contains("dynamic :: leaky_bucket ("), "{computed}");
    assert!(computed.contains(", true)"), "{computed}");
    let meter = expands(Funnel, "5, drain = user.drain", SEND);
    assert!(meter.contains(", false)") && !meter.contains("queue"), "{meter}");
    fails(Funnel, "5, 2.0, queue = true", &[("queue", "`queue` takes no value; write `queue`")]);
}

#[test]
fn borrowing() {
    let constant = expands(Rate, "5, 10, borrow", SEND);
    assert!(constant.contains("TokenBucket :: new (RATE) . burst (BURST) . borrow ()"), "{constant}");
    assert!(constant.contains("\"token bucket that borrows\""), "{constant}");
    let computed = expands(Rate, "user.rate, borrow", SEND);
    assert!(computed.contains("dynamic :: Refill :: Borrow"), "{computed}");
    expands(Rate, "5, borrow, charge_when = |out| out.is_err()", SEND);
    let message = "a bucket that lets calls borrow refills continuously; leave out `refill`, or `borrow`";
    fails(Rate, "\"5/s\", refill = interval, borrow", &[("refill", message)]);
    fails(Rate, "5, borrow, refill = greedy", &[("refill", message)]);
    fails(Rate, "5, borrow = true", &[("borrow", "`borrow` takes no value; write `borrow`")]);
}

#[test]
fn warming_up() {
    for args in ["5, warmup = \"3s\"", "5, warmup = 3", "5, borrow, warmup = 3"] {
        let constant = expands(Rate, args, SEND);
        assert!(constant.contains("TokenBucket :: new (RATE) . warmup (WARMUP)"), "{constant}");
        assert!(constant.contains("\"token bucket that warms up\""), "{constant}");
        assert!(constant.contains("(\"warmup\" , __ratelimits :: Constant :: Time (WARMUP))"), "{constant}");
        assert!(constant.contains("admissible (& ratelimits_policy , \"warmup\")"), "{constant}");
    }
    let computed = expands(Rate, "5, warmup = user.warmup", SEND);
    assert!(
        computed.contains("Warmup (__ratelimits :: dynamic :: period (\"warmup\" , user . warmup))"),
        "{computed}"
    );
    let literal = expands(Rate, "user.rate, warmup = 3", SEND);
    assert!(
        literal.contains("TokenBucket :: new (__ratelimits :: literal :: FASTEST) . warmup (WARMUP)"),
        "{literal}"
    );
    for (written, told) in [
        ("0.5", "`warmup` has no fractions; write `warmup = \"500ms\"`"),
        ("3.0", "`warmup` has no fractions; write `warmup = \"3s\"`"),
        (
            "0.5 * 4.0",
            "`warmup` has no fractions; write whole seconds: `warmup = 60`, or a time with its unit: `warmup = \"500ms\"`",
        ),
    ] {
        fails(Rate, &format!("5, warmup = {written}"), &[(written, told)]);
    }
    fails(Rate, "5, warmup = 3s", &[("3s", "a number with a time is a string; write `warmup = \"3s\"`")]);
}

#[test]
fn what_contradicts_a_warmup() {
    const BURST: &str = "what a bucket holds follows from its `warmup`; leave out `burst`, or `warmup`";
    const REFILL: &str = "a bucket that warms up refills continuously; leave out `refill`, or `warmup`";
    const CHARGE_WHEN: &str = "a bucket that warms up takes back only its last charge; leave out `charge_when`, or write \
                               `borrow` for `warmup`";
    fails(Rate, "5, 10, warmup = \"3s\"", &[("10", BURST)]);
    fails(Rate, "5, warmup = \"3s\", burst = \"5s\"", &[("burst", BURST)]);
    fails(Rate, "\"5/s\", refill = interval, warmup = 3", &[("refill", REFILL)]);
    fails(Rate, "5, borrow, warmup = 3, refill = greedy", &[("refill", REFILL)]);
    fails(Rate, "5, warmup = 3, charge_when = Result::is_err", &[("charge_when", CHARGE_WHEN)]);
    fails(
        Rate,
        "5, 10, warmup = 3, refill = interval, charge_when = Result::is_err",
        &[("10", BURST), ("refill", REFILL), ("charge_when", CHARGE_WHEN)],
    );
}
