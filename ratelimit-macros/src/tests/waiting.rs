//! `timeout`, `queue`, `borrow` and `warmup`.

use super::*;

#[test]
fn timeouts_have_a_unit() {
    for text in ["\"200ms\"", "\"forever\"", "\"1h30m\""] {
        let expanded = expands(Rate, &format!("5, timeout = {text}"), SEND);
        let constant = format!(
            "const TIMEOUT : :: core :: time :: Duration = __ratelimits :: const_args :: timeout (\"timeout\" , {text})"
        );
        assert!(expanded.contains(&constant), "{expanded}");
    }
    let computed = expands(Rate, "5, timeout = user.max_wait", SEND);
    assert!(computed.contains("runtime_args :: timeout (\"timeout\" , user . max_wait)"), "{computed}");
    let message = "`timeout` is a string with a unit; write `timeout = \"200ms\"` or `timeout = \"forever\"`";
    let values = ["0", "2 * 60", "0.2", "-1", "-0.5", "200ms", "forever"];
    for kind in [Rate, Count, Funnel, Window] {
        fails_with(kind, "5, 60, timeout", &values, message);
    }
    let seconds = "`timeout` has no unit; write `timeout = \"3s\"` for seconds, or `timeout = \"3ms\"` for milliseconds";
    fails_with(Rate, "5, timeout", &["3", "3u64", "(3)"], seconds);
    let forever = "async fn send(forever: Duration) -> Result<(), AppError> { Ok(()) }";
    expands(Rate, "5, timeout = forever", forever);
    expands(Rate, "5, timeout = limits::forever", SEND);
}

#[test]
fn timeouts_of_zero_are_errors_except_of_queues() {
    let message = "a call never waits without a `timeout`; leave it out";
    for kind in [Rate, Count, Funnel, Window] {
        fails_with(kind, "5, 60, timeout", &["\"0s\"", "\"0 ms\"", "\"0h0m\""], message);
    }
    expands(Funnel, "5, 60, queue, timeout = \"0s\"", SEND);
    expands(Rate, "5, timeout = \"10ms\"", SEND);
}

#[test]
fn shadow_never_waits() {
    for args in ["5, 60, shadow, timeout = \"1s\"", "5, 60, timeout = \"1s\", shadow"] {
        fails(Count, args, &[("timeout", "a policy in `shadow` never waits; leave out `timeout`")]);
    }
}

#[test]
fn only_queues_wait_by_default() {
    for (kind, args, default) in [
        (Rate, "5, borrow", "ZERO"),
        (Rate, "5, warmup = 3", "ZERO"),
        (Count, "5, 60", "ZERO"),
        (Funnel, "5, 60", "ZERO"),
        (Funnel, "5, 60, queue", "MAX"),
        (Funnel, "5, 60, queue, shadow", "ZERO"),
        (Window, "5, 60", "ZERO"),
    ] {
        let expanded = expands(kind, args, SEND);
        assert!(expanded.contains(&format!("wait (:: core :: time :: Duration :: {default})")), "{args}");
    }
    let bounded = expands(Funnel, "5, 60, queue, timeout = \"1s\"", SEND);
    assert!(!bounded.contains("MAX") && bounded.contains("TIMEOUT"), "{bounded}");
}

#[test]
fn queue_is_a_funnel_flag() {
    let queue = expands(Funnel, "5, drain = user.drain, queue", SEND);
    let policy = "LeakyBucket :: draining (CAPACITY , ratelimits_drain ?) . queue ()";
    assert!(queue.contains(policy) && queue.contains("\"leaky bucket queue\""), "{queue}");
    let meter = expands(Funnel, "5, 2.0", SEND);
    assert!(meter.contains("LeakyBucket :: new (") && !meter.contains("queue"), "{meter}");
}

#[test]
fn borrow_refills_continuously() {
    let borrowing = expands(Rate, "user.rate, 10, borrow", SEND);
    let policy = "TokenBucket :: new (ratelimits_rate ?) . burst (BURST) . borrow ()";
    assert!(borrowing.contains(policy) && borrowing.contains("\"borrowing token bucket\""), "{borrowing}");
    expands(Rate, "5, borrow, charge_when = |out| out.is_err()", SEND);
    let message = "a bucket with `borrow` refills continuously; leave out `refill` or `borrow`";
    fails(Rate, "\"5/s\", refill = interval, borrow", &[("refill", message)]);
    fails(Rate, "5, borrow, refill = greedy", &[("refill", message)]);
}

#[test]
fn warmup_implies_borrow() {
    for args in ["5, warmup = \"3s\"", "5, warmup = 3", "5, borrow, warmup = 3"] {
        let expanded = expands(Rate, args, SEND);
        assert!(expanded.contains(". warmup (__ratelimits :: const_args"), "{expanded}");
        assert!(
            expanded.contains("\"warming-up token bucket\"") && !expanded.contains(". borrow ()"),
            "{expanded}"
        );
    }
}

#[test]
fn warmup_determines_burst_and_refill() {
    const BURST: &str = "`warmup` determines the burst; leave out `burst` or `warmup`";
    const REFILL: &str = "a bucket with `warmup` refills continuously; leave out `refill` or `warmup`";
    const CHARGE_WHEN: &str = "a bucket with `warmup` can refund only its last charge; leave out `charge_when`, or write \
                               `borrow` instead of `warmup`";
    fails(Rate, "5, warmup = \"3s\", burst = \"5s\"", &[("burst", BURST)]);
    fails(Rate, "5, borrow, warmup = 3, refill = greedy", &[("refill", REFILL)]);
    fails(
        Rate,
        "5, 10, warmup = 3, refill = interval, charge_when = Result::is_err",
        &[("10", BURST), ("refill", REFILL), ("charge_when", CHARGE_WHEN)],
    );
}
