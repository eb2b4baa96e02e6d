//! Every order of three calls, a refund, a settlement, a pause and a step back of the clock, with small numbers and at small distances.
//! The calls that are admitted keep what the policy promises. `RATELIMITS_TEST_BUDGET=long` tries more distances.

use std::time::Duration;

use super::{AlgorithmSpec, ChargeId, State};
use crate::base::property_tests::is_long;
use crate::base::rate::Rate;
use crate::policy::{
    ConcurrencyLimit, FixedWindow, LeakyBucket, Policy, Promise, SlidingWindow, TokenBucket,
};

/// What happens in a history, each once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Call(usize),
    /// The first call gets all of its permits back.
    Refund,
    /// The second call has used one permit more or less than it cost.
    Settle,
    Pause,
    /// The clock of the store steps back.
    StepBack,
}

const EVENTS: [Event; 7] = [
    Event::Call(0),
    Event::Call(1),
    Event::Call(2),
    Event::Refund,
    Event::Settle,
    Event::Pause,
    Event::StepBack,
];

/// The time in which a bucket refills a permit, in microseconds.
const INTERVAL: u64 = 3;
/// The length of a window.
const PERIOD: u64 = 7;
const PAUSE: u64 = 4;
const STEP: u64 = 5;
/// The first time of each history: neither the start of a window nor near one.
const START: u64 = 700_003;

/// What was charged, and is kept.
#[derive(Clone, Copy, Debug)]
struct Kept {
    /// When, by a clock that never steps.
    at: u64,
    permits: u64,
    id: ChargeId,
    /// The window from which the clock had stepped back into an earlier one, if it had.
    relived: Option<u64>,
    /// Whether it was a call, and not what a call has used beyond its cost.
    is_call: bool,
}

/// A key of a store, and what has happened so far.
#[derive(Clone)]
struct History<'m> {
    model: &'m Model,
    state: Option<State>,
    /// The time, and how far the clock of the store is behind it.
    now: u64,
    behind: u64,
    /// Whether a call is given back for which the clock has stepped back since.
    gives_back_more: bool,
    relived: Option<u64>,
    /// When the pause ends.
    paused_until: u64,
    kept: Vec<Kept>,
    /// Where those of the calls are.
    calls: [Option<usize>; 3],
    events: Vec<(Event, u64)>,
}

/// A policy, and what calls of it cost.
struct Model {
    spec: AlgorithmSpec,
    promise: Promise,
    costs: [u64; 3],
    /// Whether the second call uses a permit more than it cost, and not one less.
    uses_more: bool,
    /// How much later than the event before an event may come.
    distances: &'static [u64],
}

impl Model {
    /// Tries all histories, and returns how many there are.
    fn check(&self) -> u64 {
        let start = History {
            model: self,
            state: None,
            now: START,
            behind: 0,
            gives_back_more: false,
            relived: None,
            paused_until: 0,
            kept: Vec::new(),
            calls: [None; 3],
            events: Vec::new(),
        };
        start.check_rest(&EVENTS)
    }
}

impl History<'_> {
    fn check_rest(&self, left: &[Event]) -> u64 {
        let mut count = 0;
        for (i, event) in left.iter().enumerate() {
            let comes_too_early = match event {
                Event::Refund => left.contains(&Event::Call(0)),
                Event::Settle => left.contains(&Event::Call(1)),
                _ => false,
            };
            if comes_too_early {
                continue;
            }
            let rest: Vec<Event> = [&left[..i], &left[i + 1..]].concat();
            for distance in self.model.distances {
                let mut history = self.clone();
                history.happens(*event, *distance);
                count += if rest.is_empty() { 1 } else { history.check_rest(&rest) };
            }
        }
        count
    }

    fn happens(&mut self, event: Event, distance: u64) {
        self.now += distance;
        self.events.push((event, distance));
        let clock = self.now - self.behind;
        let Model { spec, costs, uses_more, .. } = self.model;
        match event {
            Event::Call(i) => self.call(i, costs[i], clock),
            Event::Refund => {
                if let Some(call) = self.calls[0] {
                    self.gives_back(call);
                    let Kept { permits, id, .. } = self.kept[call];
                    spec.refund(&mut self.state, clock, permits, Some(id));
                    self.kept[call].permits = 0;
                }
            }
            Event::Settle => {
                if let Some(call) = self.calls[1] {
                    let Kept { id, .. } = self.kept[call];
                    if *uses_more {
                        spec.debit(&mut self.state, clock, 1);
                        if spec.can_owe() {
                            self.kept.push(Kept {
                                at: self.now,
                                permits: 1,
                                id,
                                relived: None,
                                is_call: false,
                            });
                        }
                    } else {
                        self.gives_back(call);
                        spec.refund(&mut self.state, clock, 1, Some(id));
                        self.kept[call].permits -= 1;
                    }
                }
            }
            Event::Pause => {
                spec.pause(&mut self.state, clock, PAUSE);
                self.paused_until = self.now + PAUSE;
            }
            Event::StepBack => {
                self.behind += STEP;
                // The state of the later window counts as of now, and the earlier one is forgotten.
                if clock / PERIOD != (clock - STEP) / PERIOD {
                    self.relived = Some(clock / PERIOD);
                }
            }
        }
    }

    /// A bucket that has refilled takes what a call took for missing again, if the clock steps back.
    fn gives_back(&mut self, call: usize) {
        let call_at = self.events.iter().position(|(event, _)| self.is_of(*event, call));
        let step_at = self.events.iter().position(|(event, _)| *event == Event::StepBack);
        self.gives_back_more |= step_at > call_at;
    }

    fn is_of(&self, event: Event, kept: usize) -> bool {
        matches!(event, Event::Call(call) if self.calls[call] == Some(kept))
    }

    fn call(&mut self, call: usize, cost: u64, clock: u64) {
        let spec = &self.model.spec;
        let snapshot = spec.check(self.state.as_ref(), clock, cost);
        let pause = AlgorithmSpec::pause_of(self.state.as_ref(), clock);
        let verdict = spec.verdict_in(pause, snapshot, clock, cost, 0);
        if !verdict.admitted {
            spec.undo(&mut self.state, clock);
            return self.check_retry(verdict.retry_after, cost, clock);
        }
        assert!(self.now >= self.paused_until, "a call starts in a pause: {self:?}");
        spec.commit(&mut self.state, snapshot, clock, cost);
        self.calls[call] = Some(self.kept.len());
        let (id, relived) = (verdict.charge_id, self.relived);
        self.kept.push(Kept { at: self.now, permits: cost, id, relived, is_call: true });
        assert!(self.keeps_promise(), "more is admitted than the policy promises: {self:?}");
    }

    /// A refused call is admitted once its `retry_after` has passed, and no earlier.
    fn check_retry(&self, retry_after: Option<u64>, cost: u64, clock: u64) {
        let Some(after) = retry_after.filter(|_| !self.model.spec.is_semaphore()) else { return };
        let admits = |at: u64| {
            let snapshot = self.model.spec.check(self.state.as_ref(), at, cost);
            let pause = AlgorithmSpec::pause_of(self.state.as_ref(), at);
            self.model.spec.verdict_in(pause, snapshot, at, cost, 0).admitted
        };
        assert!(after > 0 && admits(clock + after), "refused again after {after}: {self:?}");
        assert!(!admits(clock + after - 1), "admitted before {after}: {self:?}");
    }

    /// Whether all intervals that end with the latest call keep the promise.
    fn keeps_promise(&self) -> bool {
        let Some(last) = self.kept.last() else { return true };
        let in_intervals = |keeps: &dyn Fn(u128, u64) -> bool| {
            (0..self.kept.len()).all(|first| {
                let sum: u64 = self.kept[first..].iter().map(|kept| kept.permits).sum();
                keeps(u128::from(sum), 1000 * (last.at - self.kept[first].at))
            })
        };
        match self.model.promise {
            Promise::Bucket(bucket) => in_intervals(&|sum, length| {
                let sum = if bucket.lends { sum - u128::from(last.permits) } else { sum };
                let more = if self.gives_back_more { 1000 * STEP } else { 0 };
                sum * bucket.permit <= bucket.capacity + bucket.refill * u128::from(length + more)
            }),
            Promise::Refills { burst, refill, period } => {
                in_intervals(&|sum, length| sum <= u128::from(burst + refill * (length / period + 1)))
            }
            Promise::SlidingWindow { limit, period, .. } => {
                in_intervals(&|sum, length| length >= period || sum <= u128::from(limit))
            }
            Promise::OpenedWindows { limit, .. } => self.kept_where(|kept| kept.id.at == last.id.at) <= limit,
            Promise::AlignedWindows { limit, .. } => {
                let window = |kept: &Kept| (kept.id.at / PERIOD, kept.relived);
                self.kept_where(|kept| window(kept) == window(last)) <= limit
            }
            Promise::CalendarWindows { .. } => unreachable!("no model is of a calendar"),
            Promise::Holds { max } => self.kept.iter().map(|kept| kept.permits).sum::<u64>() <= max,
        }
    }

    /// Returns what is kept of some calls, such as those of a window, which their charges name.
    fn kept_where(&self, is_counted: impl Fn(&Kept) -> bool) -> u64 {
        self.kept.iter().filter(|kept| kept.is_call && is_counted(kept)).map(|kept| kept.permits).sum()
    }
}

impl std::fmt::Debug for History<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Model { spec, costs, uses_more, .. } = self.model;
        write!(f, "{spec:?}, costs {costs:?}, uses more {uses_more}, {:?}, kept {:?}", self.events, self.kept)
    }
}

fn check(policies: impl IntoIterator<Item = Policy>) {
    let distances: &[u64] = if is_long() { &[0, 1, 3] } else { &[0, 3] };
    let mut histories = 0;
    for policy in policies {
        let (spec, promise) = (policy.spec().unwrap(), policy.promise().unwrap());
        for (costs, uses_more) in [([1, 1, 1], true), ([1, 2, 1], false), ([2, 1, 2], true)] {
            histories += Model { spec, promise, costs, uses_more, distances }.check();
        }
    }
    // As many orders as there are with the refund and the settlement behind their calls.
    assert!(histories.is_multiple_of(1260), "{histories}");
    println!("{histories} histories");
}

fn rate() -> Rate {
    Rate::new(1, Duration::from_micros(INTERVAL))
}

fn period() -> Duration {
    Duration::from_micros(PERIOD)
}

#[test]
fn token_buckets_keep_their_promise() {
    let bucket = TokenBucket::new(rate()).burst(2);
    check([bucket, bucket.adjustable(), bucket.settled()].map(Policy::from));
}

#[test]
fn buckets_that_borrow_keep_their_promise() {
    let bucket = TokenBucket::new(rate()).burst(1).borrow();
    check([bucket, bucket.adjustable(), bucket.settled()].map(Policy::from));
}

#[test]
fn interval_buckets_keep_their_promise() {
    let bucket = TokenBucket::new(Rate::new(2, period())).interval_refill();
    check([bucket, bucket.adjustable()].map(Policy::from));
}

#[test]
fn buckets_that_warm_up_keep_their_promise() {
    let bucket = TokenBucket::new(rate()).warmup(3 * period());
    check([bucket, bucket.adjustable()].map(Policy::from));
}

#[test]
fn leaky_buckets_keep_their_promise() {
    let bucket = LeakyBucket::new(2, rate());
    check([bucket, bucket.adjustable(), bucket.queue(), bucket.queue().adjustable()].map(Policy::from));
}

#[test]
fn fixed_windows_keep_their_promise() {
    check([FixedWindow::new(2, period()), FixedWindow::new(2, period()).aligned()].map(Policy::from));
}

#[test]
fn sliding_windows_keep_their_promise() {
    let window = SlidingWindow::new(2, period());
    check([window, window.precision(Duration::from_micros(1))].map(Policy::from));
}

#[test]
fn concurrency_limits_keep_their_promise() {
    check([ConcurrencyLimit::new(2).into()]);
}
