//! `lease`.

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
        assert!(expanded.contains("lease : :: core :: option :: Option :: Some (LEASE)"), "{expanded}");
    }
    let expanded = expands(Count, "user.limit, 60, lease = 5", SEND);
    assert!(expanded.contains("Some (LEASE)") && !expanded.contains("check_permits"), "{expanded}");
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
