//! Checks every interval of what was admitted against the promise of the policy. Nothing here knows how the library decides.

use ratelimit_runtime::Promise;

/// Permits that one call took, at some time from `start` to `end`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) permits: u64,
    /// What of the permits was used beyond the cost of the call, and when that has been charged.
    pub(super) excess: u64,
    pub(super) settled: u64,
}

/// What a promise is widened by.
#[derive(Clone, Debug, Default)]
pub(super) struct Widening {
    /// Between which times a key may have lost its state: an interval around one is two intervals.
    pub(super) breaks: Vec<[u64; 2]>,
    /// Permits that were given back unchecked, and when.
    pub(super) refunds: Vec<(u64, u64)>,
    /// How long before a call its permits were charged at most.
    pub(super) life: u64,
}

/// Whether the calls of windows tell when these were opened: all were charged when they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Windows {
    Known,
    Unknown,
    /// Aligned to a clock that shows this at time 0.
    From(u64),
}

/// Checks every interval that ends with an admission.
pub(super) fn check(
    promise: Promise,
    windows: Windows,
    all: &[Admission],
    widening: &Widening,
) -> Result<(), String> {
    all.iter().try_for_each(|last| {
        let exceeded = exceeded(promise, windows, all, *last, widening);
        exceeded.map_or(Ok(()), |interval| Err(format!("{interval} of {promise:?}, {windows:?}: {all:?}")))
    })
}

/// Returns the interval that ends with a call, and exceeds the promise.
pub(super) fn exceeded(
    promise: Promise,
    windows: Windows,
    all: &[Admission],
    last: Admission,
    widening: &Widening,
) -> Option<String> {
    let mut before: Vec<Admission> = all.iter().copied().filter(|call| call.end <= last.end).collect();
    before.sort_by_key(|call| std::cmp::Reverse(call.start));
    let known = opened_window(promise, windows, &before, last);
    let (mut sum, mut largest, mut unsettled) = (0, 0, 0);
    for call in before {
        if known.is_some_and(|opened| call.start < opened) {
            break;
        }
        if let (Promise::AlignedWindows { period, .. }, Windows::From(epoch)) = (promise, windows)
            && (call.start + epoch) / (period / 1000) != (last.end + epoch) / (period / 1000)
        {
            break;
        }
        // A call that waits when the state is lost keeps its slot beside those that come then.
        let waits = widening.breaks.iter().any(|[from, to]| call.start <= *to && *from < call.end);
        sum += if waits && call.start < call.end { 0 } else { call.permits };
        largest = largest.max(call.permits);
        if call.settled >= last.start {
            unsettled += call.excess;
        }
        let start = call.start.saturating_sub(widening.life);
        let breaks =
            widening.breaks.iter().filter(|[from, to]| *from <= last.end && *to >= start).count() as u64;
        // They may come late.
        let refunds = widening.refunds.iter().filter(|(at, _)| *at <= last.end);
        let more = unsettled + refunds.map(|(_, permits)| permits).sum::<u64>();
        let length = last.end - start;
        // It promises nothing of longer ones: what is settled counts for a period from then on.
        if let Promise::SlidingWindow { period, .. } = promise
            && length >= period / 1000
        {
            break;
        }
        let allowed = match windows {
            Windows::Unknown => {
                bound(promise, length, largest) + u128::from(breaks) * bound(promise, 0, largest)
            }
            _ => (1 + u128::from(breaks)) * limit_of(promise),
        };
        if u128::from(sum) * permit(promise) > allowed + u128::from(more) * permit(promise) {
            return Some(format!(
                "{sum} permits within {length} µs up to {} with {more} more, {breaks} breaks",
                last.end
            ));
        }
    }
    None
}

/// The fractions into which a permit is divided.
fn permit(promise: Promise) -> u128 {
    match promise {
        Promise::Bucket(bucket) => bucket.permit,
        _ => 1,
    }
}

/// Returns what an interval of this length admits, in fractions of a permit. The largest call may exceed a bucket that lends.
fn bound(promise: Promise, micros: u64, largest: u64) -> u128 {
    // Half-open intervals that include a call at their end are longer than that.
    let times = |period: u64| u128::from(micros * 1000 / period);
    match promise {
        Promise::Bucket(bucket) => {
            let lent = if bucket.lends { u128::from(largest) * bucket.permit } else { 0 };
            bucket.capacity + bucket.refill * u128::from(micros) * 1000 + lent
        }
        Promise::Refills { burst, refill, period } => {
            u128::from(burst) + u128::from(refill) * (times(period) + 1)
        }
        // A window may begin and another one end in the interval.
        Promise::OpenedWindows { limit, period } | Promise::AlignedWindows { limit, period } => {
            u128::from(limit) * (times(period) + 2)
        }
        Promise::SlidingWindow { limit, .. } => u128::from(limit),
        promise => unreachable!("{promise:?}"),
    }
}

/// Returns what a window admits.
fn limit_of(promise: Promise) -> u128 {
    match promise {
        Promise::OpenedWindows { limit, .. } | Promise::AlignedWindows { limit, .. } => u128::from(limit),
        promise => unreachable!("{promise:?} has no windows"),
    }
}

/// Returns when the window of a call was opened, if all calls before tell.
fn opened_window(promise: Promise, windows: Windows, before: &[Admission], last: Admission) -> Option<u64> {
    let (Promise::OpenedWindows { period, .. }, Windows::Known) = (promise, windows) else { return None };
    let mut opened: Option<u64> = None;
    for call in before.iter().rev().filter(|call| call.start <= last.start) {
        if opened.is_none_or(|opened| call.start >= opened + period / 1000) {
            opened = Some(call.start);
        }
    }
    opened
}
