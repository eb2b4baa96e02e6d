use super::*;
use crate::decide::overrides::Value;

#[test]
fn shapes_of_all_policies_are_known() {
    let second = Duration::from_secs(1);
    let (bucket, leaky) = (TokenBucket::per_second(3).burst(7), LeakyBucket::new(7, Rate::per_second(3)));
    let (window, log) = (FixedWindow::new(7, second), SlidingWindow::new(7, second));
    let warm = TokenBucket::per_second(3).warmup(second);
    let policies: [(Policy, &str, bool); 20] = [
        (bucket.into(), "tb1-333334-2333338", true),
        (bucket.borrow().into(), "bb1-3-1000000000-2333334", true),
        (bucket.interval_refill().into(), "ib1-7-3-1000000", true),
        (warm.into(), "wu1-3-1000000000-1000000", true),
        (leaky.into(), "lb1-333334-2333338", true),
        (leaky.queue().into(), "lq1-333334-2666672", true),
        (window.into(), "fw2-1000000", false),
        (window.aligned().into(), "fa2-1000000", false),
        (log.into(), "sl1-1000000", false),
        (log.precision(second / 10).into(), "sc1-1000000-100000", false),
        (ConcurrencyLimit::new(7).into(), "cl1", false),
        (bucket.adjustable().into(), "tb3", false),
        (bucket.borrow().adjustable().into(), "bb3", false),
        (bucket.settled().into(), "tb4", false),
        (bucket.borrow().settled().into(), "bb4", false),
        (leaky.settled().into(), "lb4", false),
        (bucket.interval_refill().adjustable().into(), "ib2-1000000", false),
        (warm.adjustable().into(), "wu2", false),
        (leaky.adjustable().into(), "lb3", false),
        (leaky.queue().adjustable().into(), "lq3", false),
    ];
    for (policy, shape, has_numbers) in policies {
        let spec = policy.spec().unwrap();
        assert_eq!(spec.to_string(), shape);
        let reading = Reading::of(shape, None, None).unwrap();
        assert_eq!(reading.knows_limit, has_numbers, "{shape}");
        assert_eq!(reading.spec == spec, has_numbers, "{shape}: {reading:?}");
        assert_eq!((reading.shape(), reading.spec().to_string()), (shape.to_owned(), shape.to_owned()));
        assert_eq!(Reading::of(shape, Some(&policy), None), Some(Reading { spec, knows_limit: true }));
    }
}

#[test]
fn overridden_policies_are_read_by_the_numbers_in_force() {
    let overridden = |argument: &str, number| Entry {
        numbers: vec![(argument.to_owned(), Value::Integer(number))],
        ..Entry::default()
    };
    let bucket = Policy::from(TokenBucket::per_second(1).burst(5));
    let burst = overridden("burst", 8);
    let spec = Policy::from(TokenBucket::per_second(1).burst(8).adjustable()).spec().unwrap();
    let in_force = Some(Reading { spec, knows_limit: true });
    assert_eq!(Reading::of("tb3", Some(&bucket), Some(&burst)), in_force);
    // The state from before, and without an inventory.
    let written = Some(Reading { spec: bucket.spec().unwrap(), knows_limit: true });
    assert_eq!(Reading::of("tb1-1000000-5000000", Some(&bucket), Some(&burst)), written);
    assert!(!Reading::of("tb3", None, Some(&burst)).unwrap().knows_limit);
    let shadow = Entry { shadow: Some(true), ..Entry::default() };
    assert_eq!(Reading::of("tb1-1000000-5000000", Some(&bucket), Some(&shadow)), written);

    let window = |limit| Policy::from(FixedWindow::new(limit, Duration::from_secs(1)));
    let spec = window(8).spec().unwrap();
    let in_force = Some(Reading { spec, knows_limit: true });
    assert_eq!(Reading::of("fw2-1000000", Some(&window(5)), Some(&overridden("limit", 8))), in_force);
}

#[test]
fn shapes_that_no_policy_has_are_unknown() {
    for shape in [
        "",
        "tb1",
        "tb1-0-0",
        "tb1-1-0",
        "tb1-10-5",
        "tb1-010-50",
        "tb1-10-50-1",
        "tb1-10-18446744073709551615",
        "tb1-10-18446744073709551616",
        "lb1-10-55",
        "lq1-10-10",
        "lq1-0-10",
        "fw2-0",
        "fw2-999999999999999999",
        "sc1-10-3",
        "sc1-10-0",
        "ib2-0",
        "ib1-0-1-1",
        "tb3-1",
        "zz1-1",
        "~",
    ] {
        assert_eq!(Reading::of(shape, None, None), None, "{shape}");
    }
}
