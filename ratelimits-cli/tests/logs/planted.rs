//! Logs of limiters that admit all that a policy allows, and the same with one permit more. `RATELIMITS_TEST_BUDGET=long` makes ten
//! million lines of each.

use std::collections::VecDeque;
use std::io::{self, Write};

use ratelimit_runtime::algorithm::State;
use ratelimit_runtime::{
    CalendarPeriod, ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Rate, SlidingWindow, TokenBucket,
};
use std::time::Duration;

use crate::command::run_on;
use crate::is_long;

const KEYS: usize = 100;

/// In microseconds since the Unix epoch: the beginning of a day.
const BEGIN: u64 = 946_684_800_000_000;

/// How long each call runs, in microseconds.
const RUNS: u64 = 500_000;

/// What decides the calls of one key.
enum Limiter {
    Library(Policy, Option<State>),
    /// Refills at fixed times, the first of them right after the burst was used.
    FixedRefills {
        left: u64,
        refill: u64,
        period: u64,
        next: u64,
    },
    /// The ends of the calls that run.
    Holds(u64, VecDeque<u64>),
}

impl Limiter {
    fn new(policy: Policy) -> Self {
        match policy {
            Policy::ConcurrencyLimit(_) => {
                Limiter::Holds(policy.spec().unwrap().max_cost().unwrap(), VecDeque::new())
            }
            Policy::TokenBucket(bucket)
                if bucket == TokenBucket::per_second(10).burst(20).interval_refill() =>
            {
                Limiter::FixedRefills { left: 20, refill: 10, period: 1_000_000, next: BEGIN }
            }
            policy => Limiter::Library(policy, None),
        }
    }

    /// Returns when the call starts, if it is admitted.
    fn starts(&mut self, now: u64) -> Option<u64> {
        match self {
            Limiter::Library(policy, state) => {
                let spec = policy.spec().unwrap();
                let wait = if spec.waiting_room().is_some() { u64::MAX } else { 0 };
                let snapshot = spec.check(state.as_ref(), now, 1);
                let verdict = spec.verdict(snapshot, now, 1, wait);
                if verdict.admitted {
                    spec.commit(state, snapshot, now, 1);
                }
                verdict.admitted.then_some(now + verdict.wait)
            }
            Limiter::FixedRefills { left, refill, period, next } => {
                while *next <= now {
                    (*left, *next) = (*left + *refill, *next + *period);
                }
                let is_admitted = *left > 0;
                *left -= u64::from(is_admitted);
                is_admitted.then_some(now)
            }
            Limiter::Holds(max, ends) => {
                while ends.front().is_some_and(|end| *end <= now) {
                    ends.pop_front();
                }
                let is_admitted = (ends.len() as u64) < *max;
                ends.extend(is_admitted.then_some(now + RUNS));
                is_admitted.then_some(now)
            }
        }
    }
}

/// Writes what a policy admits of calls that come too often, and if it is planted a call of the first key that it refuses.
fn write(policy: Policy, gap: u64, lines: u64, is_planted: bool, out: &mut impl Write) -> io::Result<()> {
    let mut limiters: Vec<Limiter> = (0..KEYS).map(|_| Limiter::new(policy)).collect();
    let mut last_starts = [BEGIN; KEYS];
    let (mut written, mut is_planted) = (0, !is_planted);
    for call in 0.. {
        let key = call % KEYS;
        let now = BEGIN + gap * (call / KEYS) as u64;
        let starts = limiters[key].starts(now);
        let plants = starts.is_none() && !is_planted && key == 7 && written > lines / 2;
        is_planted |= plants;
        // In a queue it starts beside the last one.
        let Some(time) = starts.or(plants.then_some(now.max(last_starts[key]))) else { continue };
        last_starts[key] = time;
        writeln!(out, "{}.{:06} key-{key} 0.5", time / 1_000_000, time % 1_000_000)?;
        written += 1;
        if written >= lines {
            break;
        }
    }
    Ok(())
}

#[test]
fn one_permit_too_many_is_found() {
    let lines = if is_long() { 10_000_000 } else { 10_000 };
    let second = Duration::from_secs(1);
    let ten = Rate::per_second(10);
    let (often, daily) = (40_000, 4 * 3_600_000_000);
    let policies: [(&str, Policy, u64); 12] = [
        ("rate_limit(10, 20)", TokenBucket::new(ten).burst(20).into(), often),
        ("rate_limit(10, 20, borrow)", TokenBucket::new(ten).burst(20).borrow().into(), often),
        ("rate_limit(10, warmup = \"3s\")", TokenBucket::new(ten).warmup(3 * second).into(), often),
        (
            "rate_limit(\"10/s\", 20, refill = interval)",
            TokenBucket::new(ten).burst(20).interval_refill().into(),
            often,
        ),
        ("funnel_limit(20, 10)", LeakyBucket::new(20, ten).into(), often),
        ("funnel_limit(20, 10, queue)", LeakyBucket::new(20, ten).queue().into(), often),
        ("count_limit(10, 1)", FixedWindow::new(10, second).into(), often),
        ("count_limit(10, 1, aligned)", FixedWindow::new(10, second).aligned().into(), often),
        ("count_limit(5, \"day\")", FixedWindow::calendar(5, CalendarPeriod::Day).into(), daily),
        ("window_limit(10, 1)", SlidingWindow::new(10, second).into(), often),
        (
            "window_limit(10, 1, precision = \"100ms\")",
            SlidingWindow::new(10, second).precision(second / 10).into(),
            often,
        ),
        ("concurrency_limit(5)", ConcurrencyLimit::new(5).into(), often),
    ];
    for (text, policy, gap) in policies {
        let verify = |is_planted| {
            let arguments = [text, "--key", "2", "--duration", "3", "--json"];
            // Calls of a queue start after those of other keys that come later.
            run_on("verify", &arguments, |input| write(policy, gap, lines, is_planted, input))
        };
        let clean = verify(false);
        assert_eq!((clean.code, &clean.json()["admitted"]), (Some(0), &lines.into()), "{text}: {clean:?}");
        let planted = verify(true);
        let found = planted.json();
        assert_eq!(
            (planted.code, &found["policies"][0]["exceeded_keys"]),
            (Some(1), &1.into()),
            "{text}: {found}"
        );
        assert_eq!(found["most_exceeded"][0]["key"], "key-7", "{text}: {found}");
        assert_eq!(found["most_exceeded"][0]["excess"], 1, "{text}: {found}");
    }
}
