//! Random states of the algorithms in the pass over plain states: plain ones, others, and values that are none.

use std::time::Duration;

use ratelimit_runtime::CalendarPeriod;
use ratelimit_runtime::store::AlgorithmSpec;

use super::SECOND;
use crate::support::policies;
use crate::support::random::Random;

/// The microseconds of a full bucket, and of most windows.
pub(super) const PERIOD: u64 = 5 * SECOND;
const PRECISION: u64 = SECOND / 2;
const DAY: u64 = 86_400 * SECOND;

/// Running totals wrap here.
const WRAP: u64 = 1 << 50;

#[derive(Clone, Copy, Debug)]
pub(super) enum Algorithm {
    Bucket,
    Borrowing,
    Queue,
    FixedWindow,
    SlidingWindow,
    Interval,
    Computed,
    Settled,
    /// Days in UTC.
    Calendar,
    ComputedInterval,
}

pub(super) enum Value {
    Text(Vec<u8>),
    List(Vec<String>),
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Value::Text(text.into_bytes())
    }
}

/// Doubles, packed.
impl<const N: usize> From<[f64; N]> for Value {
    fn from(numbers: [f64; N]) -> Self {
        Value::Text(numbers.map(f64::to_le_bytes).concat())
    }
}

impl Algorithm {
    /// Returns the spec of a key. Those of two keys differ.
    pub(super) fn spec(self, key: u64) -> AlgorithmSpec {
        let period = Duration::from_micros(PERIOD);
        let even = key.is_multiple_of(2);
        let limit = if even { 5 } else { 10 };
        let pair = match self {
            Algorithm::Bucket => policies::token_bucket(limit / 5, Duration::from_secs(1), limit),
            Algorithm::Borrowing => policies::borrowing(limit / 5, Duration::from_secs(1), Some(limit)),
            Algorithm::Queue => policies::queue(limit, limit / 5, Duration::from_secs(1)),
            Algorithm::FixedWindow => policies::fixed_window(limit, period, !even),
            Algorithm::SlidingWindow => {
                policies::sliding_window(limit, period, even.then_some(Duration::from_micros(PRECISION)))
            }
            Algorithm::Interval => policies::interval_refill(limit / 5, Duration::from_secs(1), limit),
            Algorithm::Computed => {
                policies::adjustable::token_bucket(limit / 5, Duration::from_secs(1), limit)
            }
            Algorithm::Settled => {
                policies::adjustable::settled(limit / 5, Duration::from_secs(1), limit, false)
            }
            Algorithm::ComputedInterval => {
                policies::adjustable::interval_refill(limit / 5, Duration::from_secs(1), limit)
            }
            Algorithm::Calendar => policies::calendar_window(limit, CalendarPeriod::Day, "UTC"),
        };
        pair.expect("the policy is valid").spec
    }
}

/// Returns the value of a key and when it expires, or `None` for no key.
pub(super) fn random(algorithm: Algorithm, key: u64, random: &mut Random, now: u64) -> Option<(Value, u64)> {
    let found = any(algorithm, key, random, now);
    if random.percent(85) {
        return found;
    }
    let until = random.pick(&[now - 1, now, now + 1, now + SECOND, now + 2 * PERIOD]);
    // Another process whose clock is ahead, or behind.
    let written = random.pick(&[now - SECOND, now - 1, now, now + 5, now + SECOND]);
    let header = match random.below(10) {
        0 => random.pick(&["paused: x ", "paused: 1 2 ", "paused: 9007199254740999 1 1 "]).to_owned(),
        _ => format!("paused: {written} {until} {} ", random.below(SECOND)),
    };
    let is_list = matches!(algorithm, Algorithm::SlidingWindow);
    let nothing = if is_list { Value::List(vec!["7".into()]) } else { Value::Text(Vec::new()) };
    let (value, ends) = found.unwrap_or((nothing, until));
    let value = match value {
        Value::Text(text) => Value::Text([header.as_bytes(), &text].concat()),
        Value::List(mut elements) => {
            let last = elements.pop().unwrap_or_default();
            elements.push(header + &last);
            Value::List(elements)
        }
    };
    Some((value, ends.max(until)))
}

fn any(algorithm: Algorithm, key: u64, random: &mut Random, now: u64) -> Option<(Value, u64)> {
    match algorithm {
        Algorithm::Bucket | Algorithm::Borrowing | Algorithm::Queue => bucket(random, now),
        Algorithm::FixedWindow => fixed_window(random, now, !key.is_multiple_of(2)),
        Algorithm::SlidingWindow => {
            sliding_window(random, now, if key.is_multiple_of(2) { PRECISION } else { 0 })
        }
        Algorithm::Interval => interval(random, now, if key.is_multiple_of(2) { 1 } else { 2 }),
        Algorithm::Computed => computed(random, now, if key.is_multiple_of(2) { 1.0 } else { 0.5 }),
        Algorithm::Settled => settled(random, now, if key.is_multiple_of(2) { 1.0 } else { 0.5 }),
        Algorithm::Calendar => calendar(random, now),
        Algorithm::ComputedInterval => {
            computed_interval(random, now, if key.is_multiple_of(2) { 1 } else { 2 })
        }
    }
}

fn bucket(random: &mut Random, now: u64) -> Option<(Value, u64)> {
    let busy = |tat: u64| (tat.to_string(), tat);
    let (text, ends) = match random.below(12) {
        0..=2 => return None,
        3 | 4 => busy(now - random.between(0, 2 * SECOND)),
        5 | 6 => busy(now + random.between(0, PERIOD)),
        // Some permits are missing, to the microsecond.
        7 => busy(now + SECOND / 2 * random.below(11)),
        8 => busy(now - now % SECOND + SECOND * random.below(3)),
        // Another process whose clock is ahead.
        9 => busy(now + PERIOD + random.between(1, SECOND)),
        10 => {
            let tat = now + random.between(1, PERIOD);
            (format!("{tat} {} {} {tat} 0", now - 1, random.below(SECOND)), tat)
        }
        _ => (random.pick(&["-5", "x", "9223372036854775807", "9007199254740999"]).to_string(), now + PERIOD),
    };
    Some((text.into(), ends))
}

fn fixed_window(random: &mut Random, now: u64, aligned: bool) -> Option<(Value, u64)> {
    let opened = match random.below(12) {
        0 | 1 => return None,
        2..=5 => now - random.between(0, PERIOD - 1),
        6 => now - random.between(PERIOD, PERIOD + SECOND),
        7 => now - PERIOD * random.below(2),
        8 => now - now % PERIOD,
        // Another process whose clock is ahead.
        9 => now + random.between(1, 2 * PERIOD),
        10 => {
            let value = match random.below(6) {
                0 => Value::List(vec![now.to_string(), "1".into()]),
                1 => format!("{now} 1").into(),
                2 => [now as f64, 1.0, 1.0].into(),
                3 => [now as f64 - 0.5, 1.0].into(),
                _ => random
                    .pick(&[
                        [-5.0, 1.0],
                        [5.0, -1.0],
                        [1e300, 1.0],
                        [1.0, 1e17],
                        [f64::NAN, 1.0],
                        [1.0, f64::NAN],
                    ])
                    .into(),
            };
            return Some((value, now + PERIOD));
        }
        _ => now - random.between(0, SECOND),
    };
    let start = if aligned { opened - opened % PERIOD } else { opened };
    Some(([opened as f64, random.between(1, 10) as f64].into(), start + PERIOD))
}

fn interval(random: &mut Random, now: u64, refill: u64) -> Option<(Value, u64)> {
    let missing = random.between(1, 10);
    let anchor = match random.below(12) {
        0 | 1 => return None,
        2..=6 => now - random.between(0, 6 * SECOND),
        7 => now - SECOND * random.below(6),
        8 => now,
        // Another process whose clock is ahead.
        9 => now + random.between(1, PERIOD),
        10 => {
            let (anchor, credited) = (now - random.below(SECOND), random.below(3));
            let ends = anchor + 12 * SECOND;
            let slot = random.pick(&[0, now + SECOND]);
            return Some((format!("{anchor} {missing} {credited} {ends} {slot}").into(), ends));
        }
        _ => {
            let text =
                random.pick(&["x", "-5 1", "5 -1", "9007199254740993 1", "1 9007199254740993", "1 .5"]);
            return Some((text.to_string().into(), now + PERIOD));
        }
    };
    Some((format!("{anchor} {missing}").into(), anchor + missing.div_ceil(refill) * SECOND))
}

/// A bucket whose last charge had this many times the pace of the next one, or mostly the same.
fn computed(random: &mut Random, now: u64, other: f64) -> Option<(Value, u64)> {
    let pace = if other < 1.0 { 500_000.0 } else { 1_000_000.0 };
    let written = now - random.between(0, SECOND);
    let tat = match random.below(12) {
        0 | 1 => return None,
        2 | 3 => written + 1,
        4..=6 => now + random.between(0, PERIOD),
        7 => now + SECOND / 2 * random.below(11),
        8 => now - now % SECOND + SECOND * random.below(3),
        9 => now + PERIOD + random.between(1, SECOND),
        _ => now + random.below(PERIOD),
    };
    let plain = [tat as f64, written as f64, 0.0, 0.0, 0.0, (written - random.below(SECOND)) as f64, pace];
    let [tat, written, _, _, _, changed, _] = plain;
    let numbers = match random.below(16) {
        0 => [tat, written, random.between(1, 9) as f64, tat, 0.0, changed, pace],
        1 => [tat, written, 0.0, 0.0, random.pick(&[now - 1, now + SECOND]) as f64, changed, pace],
        2 => [tat, written, 0.0, 0.0, 0.0, changed, 2.0 * pace],
        3 => [tat, written, 0.0, 0.0, 0.0, changed, pace / 3.0],
        // Another process whose clock is ahead.
        4 => [tat, now as f64 + 5.0, 0.0, 0.0, 0.0, now as f64 + 5.0, pace],
        5 | 6 => {
            let index = random.below(7) as usize;
            let mut numbers = plain;
            numbers[index] = random.pick(&[-5.0, plain[index] + 0.5, 1e300, f64::NAN, f64::INFINITY]);
            numbers
        }
        7 => return Some((format!("{tat} {written} 0 0 0 {changed} {pace}").into(), now + PERIOD)),
        8 => return Some(([tat, written, 0.0, 0.0, 0.0, changed, pace, 0.0].into(), tat as u64)),
        _ => plain,
    };
    // Redis would delete a key that expires in the past.
    let ends = if (1.0..9e15).contains(&numbers[0]) { numbers[0] as u64 } else { now + PERIOD };
    Some((numbers.into(), ends))
}

/// The same, with lows.
fn settled(random: &mut Random, now: u64, pace: f64) -> Option<(Value, u64)> {
    let pace = 1_000_000.0 * pace;
    let written = now - random.between(0, SECOND);
    let tat = match random.below(8) {
        0 | 1 => return None,
        2 => written + 1,
        3 => now - now % SECOND + SECOND * random.below(3),
        4 => now + PERIOD + random.between(1, SECOND),
        5 => now + SECOND / 2 * random.below(11),
        _ => now + random.below(PERIOD),
    };
    let made = random.pick(&[written, written, written - 1, now - 1, now, now + 1, now + SECOND]);
    let (mut since, mut missing, mut lows) = (0, 0, [0.0; 6]);
    for low in 0..3 {
        since += random.pick(&[0, made / 4, (made - since) / 2, 7]);
        missing += random.pick(&[0, 1, SECOND / 2, PERIOD / 3]);
        // Those since 0 are none.
        if since > 0 {
            (lows[2 * low], lows[2 * low + 1]) = (since as f64, missing as f64);
        }
    }
    let mut numbers = [0.0; 11];
    numbers[..5].copy_from_slice(&[tat as f64, written as f64, 0.0, pace, made as f64]);
    numbers[5..].copy_from_slice(&lows);
    match random.below(12) {
        0 => numbers[2] = random.pick(&[now - 1, now + SECOND]) as f64,
        1 => numbers[3] = random.pick(&[2.0 * pace, pace / 3.0]),
        // Another process whose clock is ahead.
        2 => numbers[1] = now as f64 + 5.0,
        3 | 4 => {
            let index = random.below(11) as usize;
            numbers[index] = random.pick(&[-5.0, numbers[index] + 0.5, 1e300, f64::NAN, f64::INFINITY, 9.0]);
        }
        5 => numbers = numbers.map(|number| number + 1.0),
        6 => return Some(([tat as f64, written as f64, 0.0, 0.0, 0.0, 0.0, pace].into(), tat)),
        _ => {}
    }
    // Redis would delete a key that expires in the past.
    let ends = if numbers[0] < 9e15 && numbers[4] < 9e15 {
        (numbers[0] as u64).max(numbers[4] as u64 + 1)
    } else {
        now + PERIOD
    };
    Some((numbers.into(), ends.max(1)))
}

fn sliding_window(random: &mut Random, now: u64, precision: u64) -> Option<(Value, u64)> {
    let slot = |time: u64| time.checked_rem(precision).map_or(time, |rest| time - rest);
    let earliest = now - PERIOD - precision;
    let mut stamp = match random.below(4) {
        0 => return None,
        1 => earliest - random.below(4 * SECOND),
        _ => earliest + random.below(PERIOD),
    };
    // Another process whose clock is ahead.
    let latest = if random.below(8) == 0 { now + PERIOD } else { now };
    let mut total = random.pick(&[0, 7, WRAP - 3]);
    let mut elements = Vec::new();
    // Now and then more than a pass reads at first.
    let (most, gaps) =
        if random.below(6) == 0 { (150, [1, 1, SECOND / 20]) } else { (7, [1, SECOND, PERIOD]) };
    for _ in 0..random.between(1, most) {
        if stamp > latest {
            break;
        }
        elements.extend([total, stamp]);
        total = (total + random.pick(&[0, 1, 1, 2, 2, 3, 3])) % WRAP;
        let longest = random.pick(&gaps);
        stamp = slot(stamp) + precision.max(1) + random.below(longest);
    }
    elements.push(total);
    if random.below(3) == 0 && elements.len() > 1 {
        // The newest entry is in the sub-window of now, or starts it.
        let newest = elements.len() - 2;
        let stamp = random.pick(&[now, slot(now), slot(now) - 1]);
        if newest == 1 || slot(elements[newest - 2]) < slot(stamp) {
            elements[newest] = stamp;
        }
    }
    let ends = elements.iter().rev().nth(1).map_or(now, |newest| slot(*newest)) + PERIOD + precision;
    let mut elements: Vec<String> = elements.iter().map(u64::to_string).collect();
    if random.below(6) == 0 {
        let last = elements.len() - 1;
        match random.below(5) {
            0 if last > 0 => drop(elements.remove(0)),
            1 if last > 0 => drop(elements.remove(last)),
            2 if last > 2 => elements[2] += ".5",
            _ => {
                // Neither script reads all of a list.
                let index = random.pick(&[0, last.min(1), last.saturating_sub(1), last]);
                elements[index] = match random.pick(&["x", "-5", "", "9007199254740994", "nan", ".5"]) {
                    fraction @ ".5" => format!("{}{fraction}", elements[index]),
                    text => text.into(),
                };
            }
        }
    }
    Some((Value::List(elements), ends))
}

fn computed_interval(random: &mut Random, now: u64, refill: u64) -> Option<(Value, u64)> {
    let anchor = match random.below(10) {
        0 | 1 => return None,
        2..=6 => now - random.between(0, 6 * SECOND),
        7 => now - SECOND * random.below(6),
        8 => now,
        // Another process whose clock is ahead.
        _ => now + random.between(1, PERIOD),
    };
    let missing: u64 = random.pick(&[0, 1, 2, 3, 5, 10, 10, 12]);
    let refill = if random.below(8) == 0 { 3 } else { refill };
    let credited = random.pick(&[0, 0, 1, 2, WRAP - 1]);
    let till = if credited == 0 { 0 } else { anchor + SECOND * random.below(12) };
    let slot = random.pick(&[0, 0, 0, now - SECOND, now, now + SECOND]);
    let changed = random.pick(&[anchor, anchor - SECOND, now - 10 * SECOND, now]);
    let ends = (anchor + missing.div_ceil(refill) * SECOND).max(till).max(now);
    let mut numbers = [anchor, missing, credited, till, slot, refill, changed].map(|it| it.to_string());
    if random.below(10) == 0 {
        let index = random.below(7) as usize;
        numbers[index] = random.pick(&["x", "-5", "0", "9007199254740993", ".5", ""]).to_owned();
    }
    Some((numbers.join(" ").into(), ends))
}

fn calendar(random: &mut Random, now: u64) -> Option<(Value, u64)> {
    let today = now - now % DAY;
    let opened = match random.below(8) {
        0 => return None,
        1 => today - random.between(1, 3 * DAY),
        // Another process whose clock is ahead.
        2 => now + random.between(1, DAY),
        3 => today,
        _ => now - random.below(now - today + 1),
    };
    let mut ends = opened - opened % DAY + DAY;
    if random.below(8) == 0 {
        ends = random.pick(&[now, now + 1, opened + 3 * DAY, opened + 30 * DAY]);
    }
    let pays = random.pick(&[0, 1, 5, 5, 10, 10, 12]);
    let used = random.pick(&[0, 1, 2, 3, 5, 7, 10, 11, 30]);
    let mut numbers = [opened, used, ends, pays].map(|number| number as f64);
    if random.below(8) == 0 {
        let index = random.below(4) as usize;
        numbers[index] = random.pick(&[-5.0, numbers[index] + 0.5, 1e300, f64::NAN, f64::INFINITY, 9.0]);
    }
    let value = match random.below(12) {
        0 => [numbers[0], numbers[1]].into(),
        1 => Value::List(vec![now.to_string(), "1".into()]),
        _ => numbers.into(),
    };
    Some((value, ends.max(now) + DAY / 2))
}
