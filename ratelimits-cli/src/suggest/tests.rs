//! The numbers that are found, against slow ones that are obvious.

use proptest::prelude::*;

use super::bucket::{REFILLS, buckets};
use super::demand::{Call, Demand};
use super::numbers::Numbers;
use super::rates::{Rate, rates};
use super::share::Share;
use super::trial::outcomes;
use super::window::windows;

const SECOND: u64 = 1_000_000;

/// What a policy may have admitted of a key, in times, given the call's own.
type Admits<'a> = &'a dyn Fn(&[u64], u64) -> bool;

/// Decides the calls that are not held out, each by all that was admitted before.
fn refused(demand: &Demand, admits: Admits<'_>) -> u64 {
    let mut refused = 0;
    for calls in demand.by_key() {
        let mut admitted = Vec::new();
        for call in demand.parts(calls).0 {
            match admits(&admitted, call.time) {
                true => admitted.push(call.time),
                false => refused += 1,
            }
        }
    }
    refused
}

/// No interval up to this call has more than the burst and what refills in it, a permit each so many whole microseconds.
fn bucket_admits(rate: Rate, burst: u64) -> impl Fn(&[u64], u64) -> bool {
    let interval = rate.micros_for(1);
    move |admitted, now| {
        let from =
            |i: usize| (admitted.len() - i + 1) as u64 * interval <= burst * interval + (now - admitted[i]);
        burst > 0 && (0..admitted.len()).all(from)
    }
}

/// The last period has fewer than the limit.
fn sliding_admits(limit: u64, period: u64) -> impl Fn(&[u64], u64) -> bool {
    move |admitted, now| (admitted.iter().filter(|time| *time + period > now).count() as u64) < limit
}

/// The window that is open has fewer than the limit. Calls that find none open one.
fn fixed_admits(limit: u64, period: u64) -> impl Fn(&[u64], u64) -> bool {
    move |admitted, now| {
        let (mut opened, mut count) = (None, 0);
        for time in admitted {
            if opened.is_none_or(|opened| *time >= opened + period) {
                (opened, count) = (Some(*time), 0);
            }
            count += 1;
        }
        count < limit || opened.is_none_or(|opened| now >= opened + period)
    }
}

/// Calls of up to three keys in up to a minute, many of them close to each other.
fn demands() -> impl Strategy<Value = Demand> {
    let step = prop_oneof![4 => 0u64..3, 3 => 0u64..SECOND, 1 => 0u64..5 * SECOND];
    prop::collection::vec((0usize..3, step), 6..40).prop_filter_map("all at one time", |calls| {
        let mut time = 1_000 * SECOND;
        let call = |(key, step)| {
            time += step;
            Call { key, time, cost: 1 }
        };
        Demand::new(calls.into_iter().map(call).collect())
    })
}

fn shares() -> impl Strategy<Value = Share> {
    prop::sample::select(vec!["0%", "3%", "10%", "30%", "90%"]).prop_map(|share| share.parse().unwrap())
}

fn config() -> ProptestConfig {
    ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) }
}

/// Returns the smallest number up to a largest with which at most so many calls are refused.
fn smallest(most: u64, largest: u64, refused: impl Fn(u64) -> u64) -> Option<u64> {
    (1..=largest).find(|number| refused(*number) <= most)
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn buckets_are_the_smallest(demand in demands(), share in shares()) {
        let most = share.of(demand.used);
        let burst_at = |rate: Rate| {
            let largest = rate.refill_in(demand.length() / REFILLS).min(demand.used);
            smallest(most, largest, |burst| refused(&demand, &bucket_admits(rate, burst)))
        };
        let round = rates().filter(|rate| rate.is_round());
        let mut expected: Vec<(Rate, u64)> = round.filter_map(|rate| Some((rate, burst_at(rate)?))).collect();
        let fewest = expected.last().map(|(_, burst)| *burst);
        let enough = expected.iter().position(|(_, burst)| Some(*burst) == fewest);
        expected.truncate(enough.map_or(0, |at| at + 1));

        let Some((found, place)) = buckets(&demand, share) else {
            prop_assert!(expected.is_empty());
            return Ok(());
        };
        let found: Vec<(Rate, u64)> = found.iter().map(|numbers| match numbers {
            Numbers::TokenBucket { rate, burst } => (*rate, *burst),
            other => panic!("{other:?}"),
        }).collect();
        let round: Vec<_> = found.iter().copied().filter(|(rate, _)| rate.is_round()).collect();
        prop_assert_eq!(&round, &expected);

        // Neither number of the suggested bucket could be lower, and no round rate has a smaller product.
        let (rate, burst) = found[place];
        prop_assert_eq!(burst_at(rate), Some(burst));
        let valid = |rate: &Rate| Numbers::TokenBucket { rate: *rate, burst: 1 }.spec().is_ok();
        let slower = rates().filter(valid).take_while(|other| *other != rate).last();
        prop_assert!(slower.is_none_or(|slower| burst_at(slower) != Some(burst)), "{rate} {slower:?}");
        prop_assert!(round.iter().all(|(other, more)| other.times(*more) >= rate.times(burst)));
    }

    #[test]
    fn limits_are_the_smallest(demand in demands(), share in shares()) {
        let more = share.tenfold().map(|share| share.of(demand.used));
        let shares = more.into_iter().chain([share.of(demand.used), share.tenth().of(demand.used), 0]);
        let shares: Vec<u64> = shares.collect();
        let check = |numbers: &dyn Fn(u64) -> Numbers, refused: &dyn Fn(u64) -> u64| {
            let (found, place) = windows(&demand, share, numbers).unwrap();
            let limit = |most: &u64| smallest(*most, demand.used, refused).unwrap();
            let mut expected: Vec<u64> = shares.iter().map(limit).collect();
            let suggested = limit(&share.of(demand.used));
            expected.dedup();
            let found: Vec<u64> = found.iter().map(Numbers::most_at_once).collect();
            assert_eq!((found[place], found), (suggested, expected));
        };
        let period = || "2s".to_owned();
        check(&|limit| Numbers::SlidingWindow { limit, period: period() }, &|limit| {
            refused(&demand, &sliding_admits(limit, 2 * SECOND))
        });
        check(&|limit| Numbers::FixedWindow { limit, period: period() }, &|limit| {
            refused(&demand, &fixed_admits(limit, 2 * SECOND))
        });
    }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn with_costs_all_buckets_refuse_few_enough(
        calls in prop::collection::vec((0usize..2, 0..SECOND, 0u64..9), 20..60),
        share in shares(),
    ) {
        let mut time = 1_000 * SECOND;
        let call = |(key, step, cost)| {
            time += step;
            Call { key, time, cost }
        };
        let demand = Demand::new(calls.into_iter().map(call).collect()).unwrap();
        for numbers in buckets(&demand, share).unwrap().0 {
            let outcomes = outcomes(&numbers.spec().unwrap(), &demand);
            prop_assert!(outcomes.used.refused <= share.of(demand.used), "{numbers:?}");
        }
    }
}

#[test]
fn held_out_calls_find_the_states_that_others_have_left() {
    let times = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9];
    let calls = times.map(|second| Call { key: 0, time: (1_000 + second) * SECOND, cost: 1 });
    let demand = Demand::new(calls.into()).unwrap();
    let window = Numbers::FixedWindow { limit: 3, period: "5s".to_owned() };
    let outcomes = outcomes(&window.spec().unwrap(), &demand);
    // Of the second window, three are admitted of the first part, and none of the other.
    assert_eq!((outcomes.used.refused, outcomes.held_out.refused), (2, 2));
    assert_eq!((outcomes.held_out.calls, outcomes.held_out.keys, outcomes.held_out.refused_keys), (2, 1, 1));
}
