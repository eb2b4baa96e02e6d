//! Suggestions for logs whose plans are known. `RATELIMITS_TEST_BUDGET=long` makes ten times the calls, of which several logs are alike.

use std::io::{self, Write};

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::{Policy, TokenBucket};
use serde_json::Value;

use crate::command::{Run, run_on};
use crate::is_long;

/// In microseconds since the Unix epoch: the beginning of a day.
const BEGIN: u64 = 946_684_800_000_000;
const SECOND: f64 = 1e6;
const DAY: f64 = 86_400.0 * SECOND;

/// Random numbers of a fixed seed.
struct Random(u64);

impl Random {
    /// Returns a number from 0 to 1, neither included.
    fn part(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (((mixed ^ (mixed >> 31)) >> 11) as f64 + 0.5) / (1u64 << 53) as f64
    }

    /// Returns the time to the next of events that come at random, in microseconds.
    fn gap(&mut self, mean: f64) -> f64 {
        -mean * self.part().ln()
    }
}

/// The times of calls, in microseconds from the beginning on, and the numbers of their keys.
type Calls = Vec<(f64, usize)>;

fn calls() -> f64 {
    if is_long() { 3e6 } else { 3e5 }
}

/// Users whose calls come at random, from 4 to 14 per second each, of whom a plan admits 10 per second with a burst of 20.
fn users(random: &mut Random) -> Calls {
    let spec = Policy::from(TokenBucket::per_second(10).burst(20)).spec().unwrap();
    let admits = |state: &mut Option<State>, time: f64| {
        let now = BEGIN + time as u64;
        let snapshot = spec.check(state.as_ref(), now, 1);
        let is_admitted = spec.verdict(snapshot, now, 1, 0).admitted;
        if is_admitted {
            spec.commit(state, snapshot, now, 1);
        }
        is_admitted
    };
    let (users, end) = (40, calls() / 40.0 / 8.0 * SECOND);
    let mut all = Vec::new();
    for user in 0..users {
        let mean = SECOND / (4.0 + 10.0 * random.part());
        let (mut time, mut state) = (random.gap(mean), None);
        while time < end {
            if admits(&mut state, time) {
                all.push((time, user));
            }
            time += random.gap(mean);
        }
    }
    all
}

/// Jobs that begin at random, on average every minute, with about 100 calls each, 20 ms apart on average.
fn jobs(random: &mut Random) -> Calls {
    let (jobs, end) = (50, calls() / 50.0 / 100.0 * 60.0 * SECOND);
    let mut all = Vec::new();
    for job in 0..jobs {
        let mut start = random.gap(60.0 * SECOND);
        while start < end {
            let size = random.gap(100.0) as usize + 1;
            let mut time = start;
            for _ in 0..size {
                time += random.gap(SECOND / 50.0);
                all.push((time, job));
            }
            start += random.gap(60.0 * SECOND);
        }
    }
    all
}

/// Calls of ten days, ten times as many at noon as at midnight, of users of whom the n-th calls n times as seldom as the first.
fn days(random: &mut Random) -> Calls {
    let shares: Vec<f64> = (1..=1_000).map(|user| 1.0 / f64::from(user)).collect();
    let total: f64 = shares.iter().sum();
    let mut all = Vec::new();
    while all.len() < calls() as usize {
        let time = 10.0 * DAY * random.part();
        let light = (1.0 - (time / DAY * std::f64::consts::TAU).cos()) / 2.0;
        if random.part() > 0.1 + 0.9 * light {
            continue;
        }
        let mut left = total * random.part();
        let user = shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        all.push((time, user.unwrap_or(0)));
    }
    all
}

fn suggest(calls: &Calls, arguments: &[&str]) -> Run {
    let write = |out: &mut io::BufWriter<_>| {
        for (time, key) in calls {
            let micros = BEGIN + *time as u64;
            writeln!(out, "{}.{:06} key-{key}", micros / 1_000_000, micros % 1_000_000)?;
        }
        Ok(())
    };
    let run = run_on("suggest", &[arguments, &["--key", "2", "--json"]].concat(), write);
    assert_eq!(run.code, Some(0), "{run:?}");
    run
}

/// Returns the share of calls that suggested numbers refuse of the part that they are chosen by, and of the one that is held out.
fn shares(report: &Value) -> [f64; 2] {
    let trade = report["trade"].as_array().unwrap();
    let suggested = trade.iter().find(|row| row["suggested"] == true).unwrap();
    let share = |part: &str| {
        let count = |name: &str| suggested[part][name].as_f64().unwrap();
        count("refused") / count("calls")
    };
    ["used", "held_out"].map(share)
}

fn check(calls: &Calls, arguments: &[&str]) {
    let run = suggest(calls, &[arguments, &["--refuse-at-most", "2%"]].concat());
    let [predicted, measured] = shares(&run.json());
    assert!(predicted > 0.01 && predicted <= 0.02, "{run:?}");
    assert!((measured / predicted - 1.0).abs() <= 0.1, "{predicted} {measured} {run:?}");
    assert_eq!(run.err, "");
}

#[test]
fn buckets_refuse_as_predicted_of_the_part_held_out() {
    // Of few calls, those of a single job may be a tenth of what is refused.
    for seed in if is_long() { 1..7 } else { 2..3 } {
        for calls in [users(&mut Random(seed)), jobs(&mut Random(seed)), days(&mut Random(seed))] {
            check(&calls, &[]);
        }
    }
}

#[test]
fn windows_refuse_as_predicted_of_the_part_held_out() {
    for calls in [users(&mut Random(1)), days(&mut Random(3))] {
        for algorithm in ["fixed-window", "sliding-window"] {
            check(&calls, &["--algorithm", algorithm, "--period", "1m"]);
        }
    }
}

#[test]
fn a_part_held_out_that_is_unlike_the_rest_is_told() {
    let mut calls = users(&mut Random(1));
    let end = calls.iter().map(|(time, _)| *time).fold(0.0, f64::max);
    // In the last tenth of the time everyone calls twice as often.
    let more: Calls = calls.iter().copied().filter(|(time, _)| *time > 0.9 * end).collect();
    calls.extend(more);
    let run = suggest(&calls, &["--refuse-at-most", "2%"]);
    assert!(run.err.starts_with("warning: the part held out is unlike the rest: "), "{run:?}");
    assert_eq!(run.json()["warnings"].as_array().unwrap().len(), 1);
}

#[test]
fn calls_that_a_plan_has_admitted_need_its_numbers() {
    let report = suggest(&users(&mut Random(1)), &["--refuse-at-most", "0%"]).json();
    let trade = report["trade"].as_array().unwrap();
    let row = trade.iter().find(|row| row["rate"] == "10/s").unwrap();
    assert_eq!(row["burst"], 20);
}
