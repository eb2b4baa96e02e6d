//! `lease` and `slack`.

use super::*;

#[test]
fn leases_are_constants() {
    for (kind, args) in [
        (Rate, "5, lease = 2 + 3"),
        (Rate, "\"5/s\", refill = interval, lease = 2 + 3"),
        (Count, "5, 60, lease = 2 + 3"),
    ] {
        let expanded = expands(kind, args, SEND);
        assert!(expanded.contains("const_args :: count (\"lease\" , 2 + 3)"), "{expanded}");
        assert!(expanded.contains("check_permits (& POLICY , \"lease\""), "{expanded}");
        assert!(
            expanded.contains(
                "lease : :: core :: option :: Option :: Some (__ratelimits :: LeaseSize :: Permits (LEASE))"
            ),
            "{expanded}"
        );
    }
    let expanded = expands(Count, "user.limit, 60, lease = 5", SEND);
    assert!(expanded.contains("Permits (LEASE)") && !expanded.contains("check_permits"), "{expanded}");
    let without = expands(Count, "5, 60", SEND);
    assert!(without.contains("lease : :: core :: option :: Option :: None"), "{without}");
}

#[test]
fn leases_are_the_same_for_all_calls() {
    let message = "`lease` is a whole number that is the same for all calls; write `lease = 100`";
    fails_with(Rate, "5, lease", &["user.lease", "LEASE", "2 * LEASE"], message);
    fails_with(
        Count,
        "5, 60, lease",
        &["1.5", "\"5\""],
        "`lease` is a whole number of permits; write `lease = 10`",
    );
}

#[test]
fn leased_calls_neither_wait_nor_refund() {
    for (args, argument, problem) in [
        (
            "timeout = \"1s\"",
            "timeout",
            "a call that may wait cannot use a `lease`; leave out `timeout` or `lease`",
        ),
        (
            "charge_when = Result::is_err",
            "charge_when",
            "leased permits cannot be refunded; leave out `charge_when` or `lease`",
        ),
        (
            "bind = decision",
            "bind",
            "a call from a lease has no decision of its own; leave out `bind` or `lease`",
        ),
        ("shadow", "shadow", "a policy in `shadow` cannot have a `lease`; leave out `shadow` or `lease`"),
        ("borrow", "borrow", "a bucket with `borrow` cannot have a `lease`; leave out `borrow` or `lease`"),
        (
            "warmup = 3",
            "warmup",
            "a bucket with `warmup` cannot have a `lease`; leave out `warmup` or `lease`",
        ),
    ] {
        fails(Rate, &format!("5, lease = 5, {args}"), &[(argument, problem)]);
        fails(Rate, &format!("5, {args}, lease = 5"), &[(argument, problem)]);
    }
}

#[test]
fn leases_belong_to_a_single_limit() {
    let message = "several limits on a function cannot have a `lease`; leave it out";
    let attribute = |args| LimitAttribute::new(Rate, tokens(args));
    let function = Function::parse(tokens(SEND)).unwrap();
    let attributes = [attribute("5"), attribute("6, lease = 5")];
    let Err(errors) = LimitedFunction::read(&attributes, function) else { panic!("no error") };
    assert_eq!((errors.span().source_text().unwrap(), errors.to_string()), ("5".into(), message.into()));
}

#[test]
fn slack_is_a_constant() {
    for args in ["5, slack = \"1%\"", "\"5/s\", user.burst, slack = \"1%\", cost = n"] {
        let expanded = expands(Rate, args, SEND);
        let expected = "lease : :: core :: option :: Option :: Some (__ratelimits :: const_args :: slack (\"slack\" , \"1%\"))";
        assert!(expanded.contains(expected), "{expanded}");
        assert!(expanded.contains("slack = \\\"1%\\\""), "the text of the attribute: {expanded}");
    }
}

#[test]
fn slack_is_the_same_for_all_calls() {
    let message = "`slack` is a percentage in quotes that is the same for all calls; write `slack = \"1%\"`";
    fails_with(Rate, "5, slack", &["user.slack", "SLACK", "0.01", "1"], message);
    let unquoted = "expected a percentage in quotes; write `slack = \"1%\"`";
    fails(Rate, "5, slack = 1%", &[("1%", unquoted)]);
}

#[test]
fn slack_needs_a_bound() {
    for (args, argument, problem) in [
        (
            "5, lease = 5, slack = \"1%\"",
            "slack",
            "`slack` chooses the size of leases; leave out `lease` or `slack`",
        ),
        (
            "\"5/s\", refill = interval, slack = \"1%\"",
            "refill",
            "a lease that outlives a refill lets a whole one more through, so `slack` bounds nothing; leave out `refill`, or write `lease = 10` instead of `slack`",
        ),
        (
            "user.rate, slack = \"1%\"",
            "user.rate",
            "`slack` bounds nothing if the rate changes while permits are leased; write a literal rate, or `lease = 10` instead of `slack`",
        ),
    ] {
        fails(Rate, args, &[(argument, problem)]);
    }
}

#[test]
fn calls_of_chosen_leases_neither_wait_nor_refund() {
    for (args, argument, problem) in [
        (
            "timeout = \"1s\"",
            "timeout",
            "a call that may wait cannot use a `slack`; leave out `timeout` or `slack`",
        ),
        ("shadow", "shadow", "a policy in `shadow` cannot have a `slack`; leave out `shadow` or `slack`"),
        (
            "charge_when = Result::is_err",
            "charge_when",
            "leased permits cannot be refunded; leave out `charge_when` or `slack`",
        ),
        ("settle = |out| 1", "slack", "leased permits cannot be settled; leave out `slack` or `settle`"),
        (
            "pause_when = |out| None",
            "slack",
            "processes spend what they have leased, whether or not the key is paused; leave out `slack` or `pause_when`",
        ),
        (
            "penalty = [\"1m\"]",
            "slack",
            "processes spend what they have leased, whether or not the key is paused; leave out `slack` or `penalty`",
        ),
        (
            "notify_at = 0.8",
            "slack",
            "a process takes the permits of a lease before calls use them, so no call reaches the share; leave out `slack` or `notify_at`",
        ),
    ] {
        fails(Rate, &format!("5, slack = \"1%\", {args}"), &[(argument, problem)]);
    }
    let attributes =
        [LimitAttribute::new(Rate, tokens("5")), LimitAttribute::new(Rate, tokens("6, slack = \"1%\""))];
    let function = Function::parse(tokens(SEND)).unwrap();
    let Err(errors) = LimitedFunction::read(&attributes, function) else { panic!("no error") };
    assert_eq!(errors.to_string(), "several limits on a function cannot have a `slack`; leave it out");
}
