//! `concurrency_limit`.

use super::*;

#[test]
fn a_concurrency_limit_has_the_arguments_of_a_call() {
    for args in [
        "20",
        "max = 20, cost = 2",
        "user.jobs, key = user.id, timeout = \"10s\"",
        "20, key_type = IP, fallback = |error| Err(error.into())",
        "20, skip_when = user.is_admin, on_store_error = deny",
        "20, shadow, name = \"jobs\", prefix = \"jobs\"",
        "20, registry = &user.registry, crate = ::renamed",
        "20, bind = decision",
    ] {
        expands(Concurrency, args, SEND);
    }
}

#[test]
fn nothing_of_a_call_remains_to_be_charged() {
    for (argument, problem) in [
        (
            "charge_when",
            "a call holds its permits only while it runs, so there is nothing to refund; leave out `charge_when`",
        ),
        (
            "settle",
            "a call holds its permits only while it runs, so there is nothing to settle; leave out `settle`",
        ),
        (
            "pause_when",
            "what bounds the calls that run at once is never paused; leave out `pause_when`, or write it on another attribute \
             of the function",
        ),
    ] {
        fails(Concurrency, &format!("20, {argument} = |out| out.len()"), &[(argument, problem)]);
        fails(Concurrency, &format!("{argument} = 5, max = 20"), &[(argument, problem)]);
    }
}

/// Returns how a function with this `concurrency_limit` and these arguments of a `rate_limit` expands.
fn beside(args: &str) -> String {
    let carrier = format!("#[__limit(rate_limit({args}))] {SEND}");
    let expanded = expand::attribute(Concurrency, tokens("20"), tokens(&carrier)).to_string();
    assert!(!expanded.contains("compile_error"), "{expanded}");
    expanded
}

const GUARDED: &str = "match ratelimits_charged { _ratelimits_hold => {";

#[test]
fn a_call_keeps_its_hold_around_the_body() {
    let expanded = expands(Concurrency, "20", SEND);
    assert!(expanded.contains("let ratelimits_charged = {"), "{expanded}");
    assert!(expanded.contains(&format!("{GUARDED} Ok (())")), "{expanded}");
    assert!(expanded.contains("refundable : true"), "{expanded}");
    // All of a stack are kept together, and the others are not corrected.
    let expanded = beside("5");
    assert!(expanded.contains(GUARDED) && expanded.contains("refundable : false"), "{expanded}");
    let expanded = expands(Rate, "5", SEND);
    assert!(expanded.contains("let () = {") && !expanded.contains("match ratelimits_charged"), "{expanded}");
}

#[test]
fn a_body_that_is_seen_releases_after_it() {
    let dropped = ":: core :: mem :: drop (ratelimits_charged)";
    let expanded = beside("5, pause_when = pause");
    assert!(expanded.contains("let (ratelimits_charged , ratelimits_pausable) = {"), "{expanded}");
    assert!(expanded.contains(dropped) && !expanded.contains(GUARDED), "{expanded}");
    for corrected in ["5, settle = used", "5, charge_when = failed, pause_when = pause"] {
        let expanded = beside(corrected);
        assert!(expanded.contains("Charged :: correct (ratelimits_charged"), "{expanded}");
        assert!(!expanded.contains(dropped) && !expanded.contains(GUARDED), "{expanded}");
    }
}

#[test]
fn a_bound_decision_is_the_hold() {
    for expanded in [
        expands(Concurrency, "20, bind = decision", SEND),
        beside("5, bind = decision"),
        beside("5, bind = decision, pause_when = pause"),
    ] {
        assert!(expanded.contains("Call :: decide_bound") && !expanded.contains(GUARDED), "{expanded}");
        assert!(!expanded.contains("mem :: drop (ratelimits_charged)"), "{expanded}");
    }
}
