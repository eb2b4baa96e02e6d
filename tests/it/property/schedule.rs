//! Random schedules: keys with policies, and timed operations on them.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;

use crate::model::Policy;
use crate::support::bound_checker::BoundChecker;
use crate::support::pause_checker::PauseChecker;
use crate::support::policies::{self, Pair, adjustable};
use crate::support::random::Random;
use crate::support::test_store::FOREVER;

/// The kinds of policies below, and those that wait for the slots of others.
const KINDS: u64 = 27;

/// That of holds, which in Redis end with a time of their own.
const HOLDS: u64 = 27;
/// Those of calendars, whose keys have periods of their own.
const CALENDARS: [u64; 2] = [25, 26];

const ZONES: [&str; 6] =
    ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Asuncion", "Asia/Kathmandu"];

const LITERAL_BUCKETS: [u64; 6] = [0, 1, 2, 3, 11, 12];

/// A key and its policies: one, or several that differ only in numbers that may change.
#[derive(Clone, Debug)]
pub(super) struct TestKey {
    pub(super) name: String,
    pub(super) pairs: Vec<Pair>,
    /// The permits and microseconds around which the boundaries lie.
    pub(super) limit: u64,
    pub(super) period: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    /// Indexes of the key and of one of its policies.
    pub(super) key: usize,
    pub(super) pair: usize,
    pub(super) cost: u64,
    pub(super) max_wait: u64,
    pub(super) shadow: bool,
}

#[derive(Clone, Debug)]
pub(super) enum Operation {
    /// Several decisions in one call, each with several charges.
    Decide(Vec<Vec<Request>>),
    Refund(Vec<Refund>),
    /// The index of the key.
    Reset(usize),
    /// The index of the key, that of a policy, and microseconds.
    Pause(usize, usize, u64),
    /// The same, and those of each step. The shortest is first.
    Penalize(usize, usize, &'static [u64]),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Refund {
    /// The receipt at this index from the newest.
    Receipt(usize),
    /// The same, of which this share was used, in quarters of the cost, or this many permits more.
    Settlement(usize, u64, u64),
    /// A debt of the key, whatever its calls were charged.
    Debt(Request),
    /// The key and cost of this request, which holds nothing.
    Unchecked(Request),
}

impl TestKey {
    pub(super) fn checker(&self) -> BoundChecker {
        let policies: Vec<_> = self.pairs.iter().map(|pair| pair.model).collect();
        BoundChecker::of_changing(&policies)
    }

    /// Whether calls hold permits of it. Such keys are not paused.
    fn holds(&self) -> bool {
        matches!(self.pairs[0].model, Policy::Holds { .. })
    }

    fn is_of_calendar(&self) -> bool {
        matches!(self.pairs[0].model, Policy::Calendar { .. })
    }

    pub(super) fn pause_checker(&self) -> PauseChecker {
        let policies: Vec<_> = self.pairs.iter().map(|pair| pair.model).collect();
        PauseChecker::new(&policies)
    }
}

pub(super) fn keys(random: &mut Random, schedule: u64, in_process: bool) -> Vec<TestKey> {
    let scale = random.pick(&[1, 1, 3, 1000, 250_000, 1_000_000]);
    // Often several literal buckets, which start together.
    let are_buckets = random.percent(25);
    let count = if are_buckets { random.between(2, 3) } else { random.pick(&[1, 1, 2, 3]) };
    let kinds = if in_process { KINDS + 1 } else { KINDS };
    (0..count)
        .map(|i| key(random, (!are_buckets).then_some(kinds), scale, format!("{schedule}-{i}")))
        .collect()
}

/// A key of one of so many kinds, or a literal bucket.
fn key(random: &mut Random, kinds: Option<u64>, scale: u64, name: String) -> TestKey {
    loop {
        let limit = random.between(1, 8);
        let period = random.between(1, 40) * scale;
        let kind = match kinds {
            Some(kinds) => random.below(kinds),
            None => random.pick(&LITERAL_BUCKETS),
        };
        if CALENDARS.contains(&kind) {
            let (pairs, period) = calendar(random, limit);
            return TestKey { name, pairs, limit, period };
        }
        let pairs = pairs(random, kind, limit, period);
        if !pairs.is_empty() {
            return TestKey { name, pairs, limit, period };
        }
    }
}

/// Returns no policy if the library rejects the numbers: a rate too fast for whole microseconds.
fn pairs(random: &mut Random, kind: u64, limit: u64, period: u64) -> Vec<Pair> {
    let time = Duration::from_micros(period);
    let permits = random.between(1, 5);
    let limits = [limit, limit + random.between(1, 4), random.between(1, limit)];
    let parts = random.between(2, 10);
    let windows = |window: &dyn Fn(u64) -> Option<Pair>| limits.iter().copied().filter_map(window).collect();
    match kind {
        0 => policies::token_bucket(permits, time, limit).into_iter().collect(),
        1 => {
            let worth = Duration::from_nanos(random.between(1, 4000 * period));
            policies::token_bucket_for(permits, time, worth).into_iter().collect()
        }
        2 => policies::leaky_bucket(limit, permits, time).into_iter().collect(),
        3 => policies::draining_bucket(limit, time).into_iter().collect(),
        4 => policies::interval_refill(permits, time, limit).into_iter().collect(),
        5 => windows(&|limit| policies::fixed_window(limit, time, false)),
        6 => windows(&|limit| policies::fixed_window(limit, time, true)),
        7 => windows(&|limit| policies::sliding_window(limit, time, None)),
        8 => windows(&|limit| policies::sliding_window(limit, time * parts as u32, Some(time))),
        9 => policies::borrowing(permits, time, Some(limit)).into_iter().collect(),
        10 => {
            let worth = Duration::from_nanos(random.between(1, 4000 * period));
            policies::borrowing_for(permits, time, worth).into_iter().collect()
        }
        11 | 12 => policies::queue(limit, permits, time).into_iter().collect(),
        13 => {
            let warmup = Duration::from_micros(random.between(1, 8 * period));
            policies::warming_up(permits, time, warmup).into_iter().collect()
        }
        HOLDS => windows(&policies::holds),
        _ => changing(random, kind, limits, period),
    }
}

/// Returns windows of a calendar that share their state, and a time in which a boundary is near but not always crossed.
fn calendar(random: &mut Random, limit: u64) -> (Vec<Pair>, u64) {
    const DAY: u64 = 86_400_000_000;
    let (period, time) = random.pick(&[
        (CalendarPeriod::Day, DAY),
        (CalendarPeriod::Week, 7 * DAY),
        (CalendarPeriod::Month, 30 * DAY),
        (CalendarPeriod::Year, 90 * DAY),
    ]);
    let limits = [limit, limit + random.between(1, 4), random.between(1, limit)];
    let own = random.pick(&ZONES);
    let has_one_zone = random.percent(50);
    let pairs = limits.map(|limit| {
        let zone = if has_one_zone { own } else { random.pick(&ZONES) };
        policies::calendar_window(limit, period, zone)
    });
    (pairs.into_iter().flatten().collect(), time)
}

/// Returns up to three buckets that share their state.
fn changing(random: &mut Random, kind: u64, limits: [u64; 3], period: u64) -> Vec<Pair> {
    let bucket = |burst: u64| {
        let permits = random.between(1, 5);
        // Doubles are exact for whole microseconds per permit. Other rates, which are rounded up to whole ones, are here too,
        // except those of debt, which is not.
        let is_whole = matches!(kind, 17 | 23) || random.percent(50);
        let micros = if is_whole { permits * random.between(1, period) } else { random.between(1, period) };
        let (time, same) = (Duration::from_micros(micros), Duration::from_micros(period));
        match kind {
            14 | 15 => adjustable::token_bucket(permits, time, burst),
            16 => adjustable::leaky_bucket(burst, permits, time),
            17 => adjustable::borrowing(permits, time, burst),
            18 => adjustable::queue(burst, permits, time),
            19 => adjustable::interval_refill(permits, same, burst),
            20..24 => adjustable::settled(permits, time, burst, kind == 23),
            _ => adjustable::warming_up(permits, time, Duration::from_micros(random.between(1, 8 * period))),
        }
    };
    limits.map(bucket).into_iter().flatten().collect()
}

pub(super) fn operation(
    random: &mut Random,
    keys: &[TestKey],
    receipts: usize,
    has_pauses: bool,
) -> Operation {
    let pausable = keys.iter().any(|key| !key.holds());
    match random.below(100) {
        _ if has_pauses && pausable && random.percent(15) => pause(random, keys),
        0..2 => Operation::Reset(random.below(keys.len() as u64) as usize),
        2..28 => {
            let refunds = random.pick(&[1, 1, 1, 3]).min(1.max(receipts));
            Operation::Refund((0..refunds).map(|used| refund(random, keys, receipts - used)).collect())
        }
        _ => {
            let decisions = if random.percent(75) { 1 } else { random.between(2, 4) };
            Operation::Decide((0..decisions).map(|_| requests(random, keys)).collect())
        }
    }
}

fn pause(random: &mut Random, keys: &[TestKey]) -> Operation {
    let key = without_holds(random, keys);
    let TestKey { pairs, period, .. } = &keys[key];
    let micros = match random.below(20) {
        0 => 0,
        1..4 => random.between(1, 3),
        4..12 => random.below(period + 1),
        12..19 => random.below(6 * period),
        _ => 86_400_000_000,
    };
    // Programs pause no key for longer than a day.
    let micros = if keys[key].is_of_calendar() { micros.min(86_400_000_000) } else { micros };
    let pair = random.below(pairs.len() as u64) as usize;
    if random.percent(50) {
        return Operation::Pause(key, pair, micros);
    }
    let mut steps: Vec<u64> = (0..random.between(1, 3)).map(|_| 1 + random.below(micros.max(1))).collect();
    steps.sort_unstable();
    Operation::Penalize(key, pair, steps.leak())
}

fn refund(random: &mut Random, keys: &[TestKey], receipts: usize) -> Refund {
    // Mostly one of the last, like a call that leaves the wait queue.
    let last = random.pick(&[2, 6, 20]).min(receipts as u64);
    if last > 0 && random.percent(90) {
        let index = random.below(last) as usize;
        return match random.below(100) {
            0..50 => Refund::Receipt(index),
            50..70 => Refund::Settlement(index, random.below(4), 0),
            _ => Refund::Settlement(index, 4, random.pick(&[1, 1, 2, 5, 10, 20, 1000])),
        };
    }
    // Only the calls themselves end what they hold.
    let key = without_holds(random, keys);
    let request = request(random, keys, key);
    let request = Request { cost: request.cost.max(1), ..request };
    let is_unchecked = random.percent(80) && !keys[key].holds();
    if is_unchecked { Refund::Unchecked(request) } else { Refund::Debt(request) }
}

/// Returns a key that holds nothing, if there is one.
fn without_holds(random: &mut Random, keys: &[TestKey]) -> usize {
    let first = random.below(keys.len() as u64) as usize;
    let mut from_there = (first..first + keys.len()).map(|key| key % keys.len());
    from_there.find(|key| !keys[*key].holds()).unwrap_or(first)
}

/// The keys of one decision are distinct.
fn requests(random: &mut Random, keys: &[TestKey]) -> Vec<Request> {
    let mut left: Vec<usize> = (0..keys.len()).collect();
    let count = if random.percent(60) { 1 } else { random.between(1, left.len() as u64) };
    let mut next = || {
        let key = left.swap_remove(random.below(left.len() as u64) as usize);
        request(random, keys, key)
    };
    (0..count).map(|_| next()).collect()
}

fn request(random: &mut Random, keys: &[TestKey], key: usize) -> Request {
    let TestKey { limit, period, .. } = keys[key];
    let cost = match random.below(100) {
        0..10 => 0,
        10..60 => 1,
        60..80 => random.between(1, 3),
        80..92 => random.between(1, limit),
        92..98 => limit + random.between(1, 5),
        _ => random.pick(&[u64::MAX, u64::MAX / 2, 1 << 53]),
    };
    let pair = random.below(keys[key].pairs.len() as u64) as usize;
    let shadow = random.percent(25);
    let max_wait = match random.below(100) {
        _ if shadow => 0,
        0..50 => 0,
        50..60 => random.between(1, 3),
        60..75 => random.below(period + 1),
        75..90 => random.below(6 * period),
        _ => FOREVER as u64,
    };
    Request { key, pair, cost, max_wait, shadow }
}

/// Returns the time of the next operation: often near one of the `hints`, never back if the clock is steady.
pub(super) fn time(random: &mut Random, now: i64, steady: bool, keys: &[TestKey], hints: &[i64]) -> i64 {
    let period = random.pick(keys).period;
    let time = match random.below(100) {
        0..25 => now,
        25..35 => now + random.between(1, 3) as i64,
        35..62 if !hints.is_empty() => random.pick(hints) + random.between(0, 2) as i64 - 1,
        35..80 => now + random.below(2 * period) as i64,
        80..85 => now + random.below(12 * period) as i64,
        85..95 => now - random.below(period + 1) as i64,
        _ => now - random.below(6 * period) as i64,
    };
    if steady { time.max(now) } else { time }
}
