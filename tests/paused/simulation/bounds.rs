//! Checks every interval of what was admitted against the promise of the policy. Nothing here knows how the library decides.
//!
//! Where numbers differ from call to call, an interval admits what those in force for its calls allow:
//!
//! - a bucket, and an interval within one window, end with a call whose own burst or limit allowed for all others. Where messages take
//!   time, that is one of the calls that had not ended when the last one began;
//! - several windows, several refills, and what is divided by a loss, have the largest limit in the interval each;
//! - a bucket refills at the fastest rate of the calls in the interval, and of those that had not ended when it began.

use ratelimit_runtime::Promise;

/// The numbers by which a call is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Numbers {
    pub(super) limit: u64,
    /// The time of a permit or of a window, in microseconds.
    pub(super) period: u64,
    pub(super) is_overridden: bool,
}

impl Numbers {
    pub(super) fn with_larger(self, other: Numbers) -> Self {
        let Numbers { limit, period, is_overridden } = self;
        Numbers { limit: limit.max(other.limit), period: period.min(other.period), is_overridden }
    }
}

/// Permits that one call took, at some time from `start` to `end`, in microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Admission {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) permits: u64,
    pub(super) numbers: Numbers,
    /// What of the permits was used beyond the cost of the call, and when that has been charged.
    pub(super) excess: u64,
    pub(super) settled: u64,
}

impl Admission {
    /// A call at a time that is known.
    pub(super) fn at(at: u64, numbers: Numbers) -> Self {
        Admission { start: at, end: at, permits: 1, numbers, excess: 0, settled: 0 }
    }
}

/// What a policy promises by numbers.
pub(super) type Promises<'a> = dyn Fn(Numbers) -> Promise + 'a;

/// What a promise is widened by.
#[derive(Clone, Debug, Default)]
pub(super) struct Widening {
    /// Between which times a key may have lost its state: an interval around one is two intervals.
    pub(super) breaks: Vec<[u64; 2]>,
    /// Permits that were given back, whatever the state has of the calls that took them, and when.
    pub(super) refunds: Vec<(u64, u64)>,
    /// The same by receipts of calls whose state may have been lost before. Together they are worth one capacity for each loss.
    pub(super) receipts: Vec<(u64, u64)>,
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
    promises: &Promises<'_>,
    windows: Windows,
    all: &[Admission],
    widening: &Widening,
) -> Result<(), String> {
    all.iter().try_for_each(|last| {
        let exceeded = exceeded(promises, windows, all, *last, widening);
        exceeded.map_or(Ok(()), |interval| Err(format!("{interval}, {windows:?}: {all:?}")))
    })
}

/// Returns the interval that ends with a call, and exceeds the promise.
pub(super) fn exceeded(
    promises: &Promises<'_>,
    windows: Windows,
    all: &[Admission],
    last: Admission,
    widening: &Widening,
) -> Option<String> {
    let mut before: Vec<Admission> = all.iter().copied().filter(|call| call.end <= last.end).collect();
    before.sort_by_key(|call| std::cmp::Reverse(call.start));
    let mut interval = last.numbers;
    let mut promise = promises(interval);
    let is_one_window = !matches!(promise, Promise::Refills { .. }) && windows != Windows::Unknown
        || matches!(
            promise,
            Promise::Bucket(_) | Promise::SlidingWindow { .. } | Promise::CalendarWindows { .. }
        );
    let most = all.iter().map(|call| call.numbers.limit).max().unwrap_or_default();
    let rates_differ = all.iter().any(|call| call.numbers.period != interval.period);
    let (mut largest_limit, mut last_limit) = (0, 0);
    let known = opened_window(promise, windows, &before, last);
    let (mut sum, mut largest, mut unsettled) = (0, 0, 0);
    for call in &before {
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
        let is_lost = |at: &&[u64; 2]| at[0] <= last.end && at[1] >= call.start;
        // A debt that is lost is paid by nobody.
        if call.settled >= last.start || widening.breaks.iter().any(|at| is_lost(&at)) {
            unsettled += call.excess;
        }
        largest_limit = largest_limit.max(call.numbers.limit);
        if call.end >= last.start {
            last_limit = last_limit.max(call.numbers.limit);
        }
        let start = call.start.saturating_sub(widening.life);
        let breaks =
            widening.breaks.iter().filter(|[from, to]| *from <= last.end && *to >= start).count() as u64;
        // They may come late.
        let until_now = |given_back: &[(u64, u64)]| -> u64 {
            given_back.iter().filter(|(at, _)| *at <= last.end).map(|(_, permits)| permits).sum()
        };
        let losses = widening.breaks.iter().filter(|[from, _]| *from <= last.end).count() as u64;
        let receipts = until_now(&widening.receipts).min(losses * most);
        let more = unsettled + receipts + until_now(&widening.refunds);
        let length = last.end - start;
        // It promises nothing of longer ones: what is settled counts for a period from then on.
        if let Promise::SlidingWindow { period, .. } = promise
            && length >= period / 1000
        {
            break;
        }
        let is_undivided = is_one_window && breaks == 0;
        let limit = if is_undivided { last_limit } else { largest_limit };
        let period =
            if rates_differ { shortest_period(all, [call.start, last.end]) } else { interval.period };
        if (limit, period) != (interval.limit, interval.period) {
            (interval.limit, interval.period) = (limit, period);
            promise = promises(interval);
        }
        let allowed = match windows {
            Windows::Unknown => {
                bound(promise, length, largest) + u128::from(breaks) * bound(promise, 0, largest)
            }
            _ => (1 + u128::from(breaks)) * limit_of(promise),
        };
        if u128::from(sum) * permit(promise) > allowed + u128::from(more) * permit(promise) {
            return Some(format!(
                "{sum} permits within {length} µs up to {} of {promise:?} with {more} more, {breaks} breaks",
                last.end
            ));
        }
    }
    None
}

/// Returns the fastest rate of the calls that may have been charged in this time.
fn shortest_period(all: &[Admission], [from, to]: [u64; 2]) -> u64 {
    let periods = all.iter().filter(|call| call.end >= from && call.start <= to);
    periods.map(|call| call.numbers.period).min().expect("the last call is one of them")
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
        // Within one window.
        Promise::SlidingWindow { limit, .. } | Promise::CalendarWindows { limit, .. } => u128::from(limit),
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
