//! The promises of policies, tried on all intervals between two calls.

use ratelimit_runtime::Promise;

use super::super::Call;
use super::Logged;

/// Returns the highest excess of all intervals, if every time may be wrong by so much.
pub(super) fn worst(promise: Promise, calls: &[Logged], error: u64) -> u64 {
    let admitted: Vec<Call> =
        calls.iter().filter(|(_, is_admitted)| *is_admitted).map(|(call, _)| *call).collect();
    let windows = windows(promise, &admitted);
    let mut worst = 0;
    for to in 0..admitted.len() {
        for from in 0..=to {
            let (calls, last) = (&admitted[from..=to], admitted[to]);
            let time = last.time - admitted[from].time;
            let sum: u64 = calls.iter().map(|call| call.cost).sum();
            let (sum, allowed) = match promise {
                Promise::Bucket(_) | Promise::Refills { .. } => {
                    (sum, most(promise, time + 2 * error, last.cost))
                }
                Promise::SlidingWindow { limit, period, .. } if time + 2 * error < period => (sum, limit),
                Promise::OpenedWindows { limit, .. } if windows[from] == windows[to] => (sum, limit),
                Promise::AlignedWindows { limit, .. } | Promise::CalendarWindows { limit, .. }
                    if windows[from] == windows[to] =>
                {
                    let [start, end] = windows[to];
                    let is_certain = |call: &&Call| call.time - error >= start && call.time + error < end;
                    (calls.iter().filter(is_certain).map(|call| call.cost).sum(), limit)
                }
                Promise::Holds { max } => {
                    let runs = |call: &&Call| call.end > last.time + 2 * error;
                    (calls.iter().filter(runs).map(|call| call.cost).sum(), max)
                }
                _ => continue,
            };
            worst = worst.max(sum.saturating_sub(allowed));
        }
    }
    worst
}

/// Returns of each refused call whether the policy admits it after those before it, if every time may be wrong by so much. For windows
/// that do not slide, no time may be wrong.
pub(super) fn would_admit(promise: Promise, calls: &[Logged], error: u64) -> Vec<Option<bool>> {
    let refused = calls.iter().enumerate().filter(|(_, (_, is_admitted))| !is_admitted);
    refused
        .map(|(at, (refused, _))| {
            let mut before: Vec<Call> =
                calls[..at].iter().filter(|(_, is_admitted)| *is_admitted).map(|(call, _)| *call).collect();
            before.push(*refused);
            let windows = windows(promise, &before);
            let sum = |from: usize| before[from..].iter().map(|call| call.cost).sum::<u64>();
            let fits = |from: usize| {
                let time = i128::from(refused.time - before[from].time) - 2 * i128::from(error);
                match promise {
                    Promise::Bucket(bucket) => {
                        let taken = if bucket.lends { sum(from) - refused.cost } else { sum(from) };
                        let refilled = bucket.refill as i128 * time;
                        i128::from(taken) * bucket.permit as i128 <= bucket.capacity as i128 + refilled
                    }
                    // Only whole periods are sure to have had a refill.
                    Promise::Refills { burst, refill, period } => {
                        let periods =
                            if from == before.len() - 1 { 0 } else { time.div_euclid(period.into()) };
                        i128::from(sum(from)) <= i128::from(burst) + i128::from(refill) * periods
                    }
                    Promise::SlidingWindow { limit, period, precision } => {
                        from < before.len() - 1 && time >= (period + precision).into() || sum(from) <= limit
                    }
                    Promise::OpenedWindows { limit, .. }
                    | Promise::AlignedWindows { limit, .. }
                    | Promise::CalendarWindows { limit, .. } => {
                        windows[from] != windows[before.len() - 1] || sum(from) <= limit
                    }
                    Promise::Holds { max } => {
                        let running = before[..before.len() - 1]
                            .iter()
                            .filter(|call| call.end + 2 * error > refused.time);
                        running.map(|call| call.cost).sum::<u64>() + refused.cost <= max
                    }
                }
            };
            match promise {
                Promise::Bucket(bucket) if !bucket.tells_refusals => None,
                _ => Some((0..before.len()).all(fits)),
            }
        })
        .collect()
}

/// Returns the most that is admitted in an interval of this length, whose last call has this cost.
fn most(promise: Promise, time: u64, last: u64) -> u64 {
    match promise {
        Promise::Bucket(bucket) => {
            let fractions = bucket.capacity + bucket.refill * u128::from(time);
            (fractions / bucket.permit) as u64 + if bucket.lends { last } else { 0 }
        }
        Promise::Refills { burst, refill, period } => burst + refill * (time / period + 1),
        _ => unreachable!("windows and holds are no function of a length"),
    }
}

/// Returns the start and end of the window of each call.
fn windows(promise: Promise, calls: &[Call]) -> Vec<[u64; 2]> {
    let mut opened = 0;
    let window = |call: &Call| match promise {
        Promise::OpenedWindows { period, .. } => {
            if opened == 0 || call.time >= opened + period {
                opened = call.time;
            }
            [opened, opened + period]
        }
        Promise::AlignedWindows { period, .. } => {
            [call.time / period * period, (call.time / period + 1) * period]
        }
        Promise::CalendarWindows { calendar, .. } => {
            calendar.window_of(call.time / 1_000).map(|time| time * 1_000)
        }
        _ => [0, 0],
    };
    calls.iter().map(window).collect()
}
