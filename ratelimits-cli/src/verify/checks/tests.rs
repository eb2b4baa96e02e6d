//! The checks against a slow model, and against the algorithms of the library.

mod library;
mod model;

use std::time::Duration;

use proptest::prelude::*;
use ratelimit_runtime::{
    CalendarPeriod, ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket,
};

use super::*;

/// A call, and whether it is admitted.
type Logged = (Call, bool);

/// Returns the number of cases: more with `RATELIMITS_TEST_BUDGET=long`.
fn config() -> ProptestConfig {
    let is_long = std::env::var_os("RATELIMITS_TEST_BUDGET").is_some_and(|budget| budget == "long");
    ProptestConfig::with_cases(if is_long { 10_000 } else { 1_000 })
}

fn policies() -> impl Strategy<Value = Policy> {
    let micros = |number: u64| Duration::from_micros(number);
    let rate =
        (1u64..4, 3u64..40).prop_map(move |(permits, period)| Rate::new(permits, micros(100 * period)));
    let period = (1u64..40).prop_map(move |period| micros(100 * period));
    let limit = 1u64..8;
    let bucket = (rate, limit.clone());
    prop_oneof![
        bucket.clone().prop_map(|(rate, burst)| TokenBucket::new(rate).burst(burst).into()),
        (bucket.clone().prop_map(|it| it.0), period.clone())
            .prop_map(|(rate, burst)| TokenBucket::new(rate).burst_for(burst).into()),
        bucket.clone().prop_map(|(rate, burst)| TokenBucket::new(rate).burst(burst).borrow().into()),
        (bucket.clone(), period.clone())
            .prop_map(|((rate, _), time)| TokenBucket::new(rate).warmup(time).into()),
        bucket.clone().prop_map(|(rate, burst)| TokenBucket::new(rate).burst(burst).interval_refill().into()),
        bucket.clone().prop_map(|(rate, capacity)| LeakyBucket::new(capacity, rate).into()),
        bucket.prop_map(|(rate, capacity)| LeakyBucket::new(capacity, rate).queue().into()),
        (limit.clone(), period.clone()).prop_map(|(limit, period)| FixedWindow::new(limit, period).into()),
        (limit.clone(), period.clone())
            .prop_map(|(limit, period)| FixedWindow::new(limit, period).aligned().into()),
        limit.clone().prop_map(|limit| FixedWindow::calendar(limit, CalendarPeriod::Day).into()),
        (limit.clone(), period.clone()).prop_map(|(limit, period)| SlidingWindow::new(limit, period).into()),
        (limit.clone(), 1u64..10, 2u64..6).prop_map(move |(limit, parts, number)| {
            SlidingWindow::new(limit, micros(100 * parts * number)).precision(micros(100 * parts)).into()
        }),
        limit.prop_map(|max| ConcurrencyLimit::new(max).into()),
    ]
}

/// Calls in the order of their times, close enough for many to come in one period.
fn calls() -> impl Strategy<Value = Vec<Logged>> {
    // Around a midnight.
    let begin = 20_000 * 86_400_000_000_000u64 - 4_000_000;
    let gap = prop_oneof![3 => Just(0u64), 8 => 1u64..1_000, 8 => (1u64..20).prop_map(|gap| 100 * gap), 1 => 1u64..10_000];
    let call = (gap, prop_oneof![4 => Just(1u64), 1 => 1u64..6], 0u64..2_000, prop::bool::weighted(0.75));
    prop::collection::vec(call, 1..40).prop_map(move |calls| {
        let mut now = begin;
        let call = |(gap, cost, duration, is_admitted)| {
            now += 1_000 * gap;
            (Call { time: now, cost, end: now + 1_000 * duration }, is_admitted)
        };
        calls.into_iter().map(call).collect()
    })
}

/// Returns the worst excess that a check finds, and what it says of the refused calls.
fn checked(promise: Promise, clock_error: u64, calls: &[Logged]) -> (u64, Vec<Option<bool>>) {
    let mut check = check(promise, clock_error);
    let mut refused = Vec::new();
    for (call, is_admitted) in calls {
        if *is_admitted {
            check.admit(0, *call);
        } else {
            refused.push(check.would_admit(0, *call));
        }
    }
    let excess = check.exceeded().get(&0).map(Interval::excess);
    assert_ne!(excess, Some(0), "{promise:?} {calls:?}");
    (excess.unwrap_or(0), refused)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_worst_interval_is_found(policy in policies(), calls in calls()) {
        let promise = policy.promise().unwrap();
        let (excess, refused) = checked(promise, 0, &calls);
        prop_assert_eq!(excess, model::worst(promise, &calls, 0));
        prop_assert_eq!(refused, model::would_admit(promise, &calls, 0));
    }

    #[test]
    fn an_error_of_the_clock_widens_every_interval(policy in policies(), calls in calls(), clock_error in 1u64..1_000_000) {
        let promise = policy.promise().unwrap();
        // Which windows calls have opened is not certain.
        if matches!(promise, Promise::OpenedWindows { .. }) {
            return Ok(());
        }
        let (excess, refused) = checked(promise, clock_error, &calls);
        prop_assert_eq!(excess, model::worst(promise, &calls, clock_error));
        if !matches!(promise, Promise::AlignedWindows { .. } | Promise::CalendarWindows { .. }) {
            prop_assert_eq!(refused, model::would_admit(promise, &calls, clock_error));
        }
    }

    #[test]
    fn an_excess_is_one_whatever_the_times_were(
        policy in policies(),
        calls in calls(),
        clock_error in 0u64..200_000,
        errors in prop::collection::vec(-1i64..=1, 40),
    ) {
        let promise = policy.promise().unwrap();
        let admitted = library::admitted(policy, &calls);
        let error = clock_error.cast_signed();
        let shift = |((call, is_admitted), sign): (&Logged, &i64)| {
            let [time, end] = [call.time, call.end].map(|time| time.saturating_add_signed(sign * error));
            (Call { time, end, ..*call }, *is_admitted)
        };
        let mut logged: Vec<_> = admitted.iter().zip(&errors).map(shift).collect();
        logged.sort_by_key(|(call, _)| call.time);
        // The order says which call is the last, so it has to be right where that matters.
        let lends = matches!(promise, Promise::Bucket(bucket) if bucket.lends);
        if lends && logged.iter().zip(&admitted).any(|(a, b)| a.0.cost != b.0.cost) {
            return Ok(());
        }
        prop_assert_eq!(checked(promise, clock_error, &logged).0, 0);
    }

    #[test]
    fn an_excess_is_one_whichever_call_has_opened_a_window(
        limit in 1u64..4,
        period in 100u64..1_000,
        clock_error in 1u64..80,
        gaps in prop::collection::vec((0u64..80, 0.0..1.0), 1..80),
    ) {
        let policy = Policy::from(FixedWindow::new(limit, Duration::from_micros(period)));
        let mut time = 1_000_000;
        let calls: Vec<_> = gaps.iter().map(|(gap, _)| {
            time += 1_000 * gap;
            (Call { time, cost: 1, end: time }, true)
        }).collect();
        let mut logged = library::admitted(policy, &calls);
        let error = 1_000 * clock_error;
        for ((call, _), (_, share)) in logged.iter_mut().zip(&gaps) {
            call.time = call.time - error + (2.0 * share * error as f64) as u64;
        }
        logged.sort_by_key(|(call, _)| call.time);
        prop_assert_eq!(checked(policy.promise().unwrap(), error, &logged).0, 0);
    }

    #[test]
    fn the_library_keeps_its_promises(policy in policies(), calls in calls()) {
        let admitted = library::admitted(policy, &calls);
        prop_assert_eq!(checked(policy.promise().unwrap(), 0, &admitted).0, 0);
    }

    #[test]
    fn the_library_refuses_what_it_has_to(policy in policies(), calls in calls()) {
        let promise = policy.promise().unwrap();
        // A permit of a bucket takes whole microseconds, so it may come that much later.
        let is_rounded = matches!(promise, Promise::Bucket(bucket) if bucket.permit % (1_000 * bucket.refill) != 0);
        if is_rounded {
            return Ok(());
        }
        let decided = library::decided(policy, &calls);
        let (_, refused) = checked(promise, 0, &decided);
        prop_assert!(refused.iter().all(|would_admit| *would_admit != Some(true)), "{:?}", decided);
    }
}

#[test]
fn the_library_gives_all_that_it_promises() {
    for (policy, lower) in library::with_one_less() {
        let calls = library::busy(policy);
        let admitted = library::admitted(policy, &calls);
        assert_eq!(checked(policy.promise().unwrap(), 0, &admitted).0, 0, "{policy:?}");
        assert!(checked(lower.promise().unwrap(), 0, &admitted).0 > 0, "{lower:?}");
    }
}

#[test]
fn windows_are_certain_after_an_idle_period() {
    let promise = Policy::from(FixedWindow::new(1, Duration::from_secs(1))).promise().unwrap();
    for (times, is_from_first) in
        [(&[0, 9][..], true), (&[0, 9, 10, 19], true), (&[0, 11, 20], false), (&[0, 20, 21], false)]
    {
        let mut check = check(promise, 0);
        for time in times {
            check.admit(0, Call { time: time * 100_000_000, cost: 1, end: 0 });
        }
        assert_eq!(check.exceeded()[&0].is_from_first, is_from_first, "{times:?}");
    }
}

#[test]
fn intervals_are_those_of_the_calls_in_them() {
    let second = Duration::from_secs(1);
    for (policy, times, expected) in [
        (TokenBucket::per_second(1).burst(2).into(), &[0, 5, 30, 31, 32, 33][..], (30, 33, 4, 2)),
        (TokenBucket::per_second(1).burst(2).borrow().into(), &[0, 30, 30, 30, 30, 30], (30, 30, 5, 3)),
        (
            TokenBucket::new(Rate::new(2, second)).burst(2).interval_refill().into(),
            &[0, 9, 9, 10, 10, 10],
            (9, 10, 5, 4),
        ),
        (LeakyBucket::new(2, Rate::per_second(1)).queue().into(), &[0, 9, 19], (0, 9, 2, 1)),
        (FixedWindow::new(2, second).into(), &[0, 0, 10, 19, 19], (10, 19, 3, 2)),
        (FixedWindow::new(2, second).aligned().into(), &[8, 9, 10, 19, 19], (10, 19, 3, 2)),
        (SlidingWindow::new(2, second).into(), &[0, 1, 10, 10, 19], (1, 10, 3, 2)),
    ] {
        let mut check = check(Policy::promise(&policy).unwrap(), 0);
        times.iter().for_each(|time| check.admit(0, Call { time: time * 100_000_000, cost: 1, end: 0 }));
        let Interval { from, to, admitted, allowed, .. } = check.exceeded()[&0];
        assert_eq!((from / 100_000_000, to / 100_000_000, admitted, allowed), expected, "{policy:?}");
    }
}
