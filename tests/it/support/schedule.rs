//! Random schedules: which policies there are, what is asked of them, and when.

use std::time::Duration;

use super::policies::{self, Pair};
use super::random::Random;

/// As long as a call can wait, in microseconds.
pub(crate) const FOREVER: u64 = 3650 * 86_400 * 1_000_000;

/// A key, and the policies that count on it: one, or several that differ in their limit alone.
#[derive(Clone, Debug)]
pub(crate) struct Slot {
    pub(crate) name: String,
    pub(crate) pairs: Vec<Pair>,
    /// The permits it could ever give, and the microseconds that matter to it: where boundaries are looked for.
    pub(crate) limit: u64,
    pub(crate) period: u64,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask {
    pub(crate) slot: usize,
    pub(crate) pair: usize,
    pub(crate) cost: u64,
    /// How long the call waits at the most.
    pub(crate) wait: u64,
    pub(crate) shadow: bool,
}

#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// Several decisions in one call, each of several charges.
    Decide(Vec<Vec<Ask>>),
    /// Each of the charge that was admitted so many charges ago, of those that have not been given back, or without a receipt.
    Refund(Vec<(Ask, Option<usize>)>),
    Reset(usize),
}

pub(crate) fn slots(random: &mut Random, schedule: u64) -> Vec<Slot> {
    let scale = random.pick(&[1, 1, 3, 1000, 250_000, 1_000_000]);
    let count = random.pick(&[1, 1, 2, 3]);
    (0..count).map(|i| slot(random, scale, format!("{schedule}-{i}"))).collect()
}

fn slot(random: &mut Random, scale: u64, name: String) -> Slot {
    loop {
        let limit = random.between(1, 8);
        let period = random.between(1, 40) * scale;
        let pairs = pairs(random, limit, period);
        if !pairs.is_empty() {
            return Slot { name, pairs, limit, period };
        }
    }
}

/// None where the numbers make no policy: a rate that whole microseconds cannot keep.
fn pairs(random: &mut Random, limit: u64, period: u64) -> Vec<Pair> {
    let time = Duration::from_micros(period);
    let permits = random.between(1, 5);
    let limits = [limit, limit + random.between(1, 4), random.between(1, limit)];
    let (kind, parts) = (random.below(14), random.between(2, 10));
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
        _ => {
            let warmup = Duration::from_micros(random.between(1, 8 * period));
            policies::warming_up(permits, time, warmup).into_iter().collect()
        }
    }
}

pub(crate) fn action(random: &mut Random, slots: &[Slot], receipts: usize) -> Action {
    match random.below(100) {
        0..2 => Action::Reset(random.below(slots.len() as u64) as usize),
        2..28 => {
            let refunds = random.pick(&[1, 1, 1, 3]).min(1.max(receipts));
            Action::Refund(
                (0..refunds).map(|given_back| refund(random, slots, receipts - given_back)).collect(),
            )
        }
        _ => {
            let decisions = if random.percent(75) { 1 } else { random.between(2, 4) };
            Action::Decide((0..decisions).map(|_| charges(random, slots)).collect())
        }
    }
}

fn refund(random: &mut Random, slots: &[Slot], receipts: usize) -> (Ask, Option<usize>) {
    let slot = random.below(slots.len() as u64) as usize;
    let of_the_key = Ask { cost: ask(random, slots, slot).cost.max(1), ..ask(random, slots, slot) };
    // Mostly of the last ones: a call that gives up its place in the line.
    let back = random.pick(&[2, 6, 20]).min(receipts as u64);
    let by_receipt = back > 0 && random.percent(90);
    (of_the_key, by_receipt.then(|| random.below(back) as usize))
}

/// The keys of one decision are distinct.
fn charges(random: &mut Random, slots: &[Slot]) -> Vec<Ask> {
    let mut left: Vec<usize> = (0..slots.len()).collect();
    let count = if random.percent(60) { 1 } else { random.between(1, left.len() as u64) };
    let mut asks = Vec::new();
    for _ in 0..count {
        let slot = left.swap_remove(random.below(left.len() as u64) as usize);
        asks.push(ask(random, slots, slot));
    }
    asks
}

fn ask(random: &mut Random, slots: &[Slot], slot: usize) -> Ask {
    let limit = slots[slot].limit;
    let cost = match random.below(100) {
        0..10 => 0,
        10..60 => 1,
        60..80 => random.between(1, 3),
        80..92 => random.between(1, limit),
        92..98 => limit + random.between(1, 5),
        _ => random.pick(&[u64::MAX, u64::MAX / 2, 1 << 53]),
    };
    let pair = random.below(slots[slot].pairs.len() as u64) as usize;
    let shadow = random.percent(25);
    let period = slots[slot].period;
    let wait = match random.below(100) {
        _ if shadow => 0,
        0..50 => 0,
        50..60 => random.between(1, 3),
        60..75 => random.below(period + 1),
        75..90 => random.below(6 * period),
        _ => FOREVER,
    };
    Ask { slot, pair, cost, wait, shadow }
}

/// The time of the next step, which does not go back where the clock is steady. `hints` are times at which something was said to happen.
pub(crate) fn time(random: &mut Random, now: i64, steady: bool, slots: &[Slot], hints: &[i64]) -> i64 {
    let period = random.pick(slots).period;
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
