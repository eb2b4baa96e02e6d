//! A bucket that refills continuously and whose numbers change from call to call. Its permits refill at the rate of the last
//! charge; a charge at another rate finds the same permits missing. What a settled call has not used comes back as far as the bucket
//! has lacked it ever since.

use super::lacked::Lacked;
use super::{Algorithm, Event, LONGEST, Policy, Receipt, Verdict, ceil, longest_debt};

/// The most microseconds that are counted.
const MAX_LEVEL: i128 = 1 << 51;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AdjustableBucket {
    pub(crate) kind: AdjustableKind,
    pub(crate) pace: Pace,
    /// The microseconds from empty to full; for a queue, from its first slot to its end.
    pub(crate) full: i128,
    /// Whether the bucket remembers what it has lacked.
    pub(crate) settled: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AdjustableKind {
    Meter,
    Borrowing,
    Queue,
}

/// The microseconds per permit, as a ratio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    pub(crate) micros: i128,
    pub(crate) permits: i128,
}

/// The state after all events of a key.
#[derive(Clone, Copy)]
struct State {
    pace: Pace,
    full_at: i128,
    /// An upper bound of the last slot that a call waits for.
    slot: i128,
    /// Refunds of charges that were not the last one.
    credits: i128,
    /// Until when a charge made before such a refund, or at another rate, is worth anything.
    until: i128,
    /// When the first charge at this rate was made, if the key had another one.
    changed: i128,
    /// When the last charge was made, later than all charges at other rates.
    made: i128,
    written: i128,
    settled: bool,
}

impl Pace {
    /// Reduces the ratio, so that the same paces are equal.
    pub(crate) fn new(micros: i128, permits: i128) -> Self {
        let (mut divisor, mut rest) = (micros, permits);
        while rest > 0 {
            (divisor, rest) = (rest, divisor % rest);
        }
        Pace { micros: micros / divisor, permits: permits / divisor }
    }

    fn is_whole(self) -> bool {
        self.micros % self.permits == 0
    }

    /// Converts a time at another pace to this one, rounded up. Where doubles are not exact, one microsecond more makes up for what
    /// they lack.
    fn time_of(self, micros: i128, other: Pace) -> i128 {
        if micros == 0 || self == other {
            return micros;
        }
        let time = if self.is_exact(micros, other) {
            ceil(micros * self.micros * other.permits, other.micros * self.permits)
        } else {
            self.double_of(micros, other).ceil() as i128 + 1
        };
        time.min(MAX_LEVEL)
    }

    /// The same rounded down.
    fn least_time_of(self, micros: i128, other: Pace) -> i128 {
        let time = if self.is_exact(micros, other) {
            micros * self.micros * other.permits / (other.micros * self.permits)
        } else {
            self.double_of(micros, other).floor() as i128 - 1
        };
        time.clamp(0, MAX_LEVEL)
    }

    fn double_of(self, micros: i128, other: Pace) -> f64 {
        let [own, other] = [self, other].map(|pace| pace.micros as f64 / pace.permits as f64);
        micros as f64 * own / other
    }

    fn is_exact(self, micros: i128, other: Pace) -> bool {
        self.is_whole() && other.is_whole() && micros * self.micros <= self.permits << 53
    }

    pub(super) fn is_faster_than(self, other: Pace) -> bool {
        self.micros * other.permits < other.micros * self.permits
    }
}

impl Algorithm for AdjustableBucket {
    fn limit(&self) -> i128 {
        self.permits(self.full).max(1)
    }

    fn price(&self, cost: i128) -> i128 {
        ceil(cost * self.pace.micros, self.pace.permits)
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict {
        let state = state(history).map(|state| state.as_of(now));
        let missing = state.map_or(0, |state| self.full_at(state, now) - now);
        let price = self.price(cost);
        let most = self.most_missing(price);
        // Without a charge the bucket refills at its old rate.
        let free_after =
            most.map(|most| state.map_or(0, |state| self.free_at(state, now, most) - now).max(0));
        let until_slot = most.zip(free_after).map(|(most, free_after)| match free_after {
            _ if cost == 0 => 0,
            0 => 0,
            _ => (missing - most).max(1),
        });
        let max_wait = match self.kind {
            AdjustableKind::Queue => max_wait.min(self.full - price),
            _ => max_wait,
        };
        let until_slot = if cost == 0 { Some(0) } else { until_slot };
        let admitted = until_slot.is_some_and(|until_slot| until_slot <= max_wait);
        let after = if admitted { missing + price } else { missing };
        let retry_after = match self.kind {
            // A queue that moves at another rate is within the call's wait at the latest when it is empty.
            AdjustableKind::Queue => until_slot.map(|until_slot| {
                let until_empty = state.map_or(0, |state| (state.full_at - now).max(0));
                if missing < until_empty { until_empty } else { until_empty.min(until_slot - max_wait) }
            }),
            _ => free_after.filter(|_| until_slot.is_some()),
        };
        let is_charged = admitted && cost > 0;
        Verdict {
            admitted,
            wait: until_slot.filter(|_| admitted).unwrap_or(0),
            limit: self.limit(),
            remaining: self.permits((self.full - after).max(0)),
            retry_after: retry_after.filter(|_| !admitted),
            reset_after: if is_charged {
                after
            } else {
                state.map_or(0, |state| (state.full_at - now).max(0))
            },
        }
    }

    fn is_queue(&self) -> bool {
        self.kind == AdjustableKind::Queue
    }

    fn receipt(&self, history: &[Event]) -> Receipt {
        let state = state(history).expect("a charge was made");
        Receipt::FullAtPace { at: state.full_at, credits: state.credits, made: state.made }
    }

    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event> {
        let Some(state) = state(history).map(|state| state.as_of(now)) else { return Vec::new() };
        if self.settled {
            return self.settled_credits(history, state, now, cost, receipt);
        }
        let (at, credits) = match receipt {
            None => (state.full_at, state.credits),
            // At another rate the charge was worth something else.
            Some(Receipt::FullAtPace { made, .. }) if made < state.changed || self.pace != state.pace => {
                return Vec::new();
            }
            Some(Receipt::FullAtPace { at, credits, .. }) => (at, credits),
            Some(_) => unreachable!("the receipt of an adjustable bucket"),
        };
        let credited_since = state.credits - credits;
        let worth = at - credited_since - now.max(state.slot);
        let price = state.pace.time_of(self.price(cost), self.pace);
        let is_last = credited_since == 0 && at == state.full_at;
        let amount = if is_last || self.kind != AdjustableKind::Queue { price.min(worth) } else { 0 };
        if credited_since < 0 || amount <= 0 || at - credited_since > state.full_at {
            return Vec::new();
        }
        let is_undone =
            is_last && (receipt.is_some() && amount == price || self.kind == AdjustableKind::Queue);
        vec![if is_undone {
            Event::Undone { at: now, amount }
        } else {
            Event::Credited { at: now, amount, stamp: None }
        }]
    }

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool {
        state(history).is_some_and(|state| state.as_of(now).full_at < state.full_at)
    }

    fn end(&self, history: &[Event]) -> Option<i128> {
        state(history).map(State::end)
    }
}

impl AdjustableBucket {
    /// Returns the credit of a bucket that remembers what it lacked.
    fn settled_credits(
        self,
        history: &[Event],
        state: State,
        now: i128,
        cost: i128,
        receipt: Option<Receipt>,
    ) -> Vec<Event> {
        let (stamp, worth) = match receipt {
            None => (None, state.full_at - now.max(state.slot)),
            Some(Receipt::FullAtPace { made, .. }) if self.pace == state.pace && state.end() > now => {
                (Some(made), lacked(history, state).since(made).min(state.full_at - now))
            }
            Some(_) => (None, 0),
        };
        let amount = state.pace.time_of(self.price(cost), self.pace).min(worth);
        if amount > 0 { vec![Event::Credited { at: now, amount, stamp }] } else { Vec::new() }
    }

    fn permits(self, time: i128) -> i128 {
        time * self.pace.permits / self.pace.micros
    }

    fn most_missing(self, price: i128) -> Option<i128> {
        match self.kind {
            AdjustableKind::Meter => (price <= self.full).then(|| self.full - price),
            AdjustableKind::Borrowing => (price <= LONGEST).then_some(self.full),
            AdjustableKind::Queue => (price <= self.full).then_some(0),
        }
    }

    /// Returns when the bucket would be full if it refilled at this rate. A faster rate counts only after the last slot that a
    /// call waits for.
    fn full_at(self, state: State, now: i128) -> i128 {
        let since = if self.pace.is_faster_than(state.pace) { state.slot.max(now) } else { now };
        since + self.pace.time_of((state.full_at.max(now) - since).max(0), state.pace)
    }

    /// Returns when at most this much is missing at this rate, while the bucket refills at its own.
    fn free_at(self, state: State, now: i128, most: i128) -> i128 {
        let full_at = state.full_at.max(now);
        if self.pace == state.pace {
            return full_at - most;
        }
        if self.pace.is_faster_than(state.pace) && state.slot > now {
            let at_slot = self.pace.time_of((full_at - state.slot).max(0), state.pace);
            if at_slot <= most {
                return state.slot + at_slot - most;
            }
        }
        full_at - state.pace.least_time_of(most, self.pace)
    }
}

impl State {
    /// A bucket that is full.
    fn new(bucket: AdjustableBucket, at: i128) -> State {
        let AdjustableBucket { pace, settled, .. } = bucket;
        State { pace, full_at: at, slot: 0, credits: 0, until: 0, changed: 0, made: at, written: at, settled }
    }

    /// A bucket that remembers what it lacked tells its charges from each other.
    fn end(self) -> i128 {
        self.full_at.max(if self.settled { self.made + 1 } else { self.until })
    }

    /// A state from the future is as far ahead of now as it was when it was written.
    fn as_of(self, now: i128) -> State {
        let back = (self.written - now).clamp(0, (self.full_at - now).max(0));
        let made = if self.settled { self.made - back } else { self.made };
        let (full_at, slot, until) = (self.full_at - back, self.slot - back, self.until - back);
        let state = State { full_at, slot, until, made, ..self };
        if state.until > now { state } else { State { until: 0, credits: 0, changed: 0, ..state } }
    }
}

fn state(history: &[Event]) -> Option<State> {
    replay(history, |_, _, _| {})
}

/// Returns the state after all events, and tells what each has found and left.
fn replay(history: &[Event], mut tell: impl FnMut(Option<State>, &Event, State)) -> Option<State> {
    let mut last: Option<State> = None;
    for event in history {
        let at = event.at();
        let before = last.map(|state| state.as_of(at));
        let mut state = match (event, before) {
            (Event::Charged { cost, policy, .. }, before) => {
                let Policy::Adjustable(bucket) = policy else { unreachable!("an adjustable bucket") };
                let price = bucket.price(*cost);
                let found = before.map_or(at, |state| bucket.full_at(state, at).max(at));
                let full_at = found + price;
                let slot = found - bucket.most_missing(price).expect("it was admitted");
                let (pace, settled) = (bucket.pace, bucket.settled);
                match before {
                    Some(state) if settled && state.end() > at => State {
                        pace,
                        full_at,
                        slot: state.slot.max(slot),
                        made: at.max(state.made + 1),
                        ..state
                    },
                    Some(state) if !settled && state.pace == pace => State {
                        full_at,
                        slot: state.slot.max(slot),
                        until: if state.credits > 0 { state.until.max(full_at) } else { state.until },
                        made: at.max(state.changed),
                        ..state
                    },
                    Some(state) if !settled => {
                        let made = at.max(state.changed + 1);
                        let (slot, until) = (state.slot.max(slot), state.until.max(state.full_at));
                        State { pace, full_at, slot, until, changed: made, made, ..State::new(*bucket, at) }
                    }
                    _ => State { full_at, slot: slot.max(0), ..State::new(*bucket, at) },
                }
            }
            (Event::Debited { cost, policy, .. }, before) => {
                let Policy::Adjustable(bucket) = policy else { unreachable!("an adjustable bucket") };
                let live = before.filter(|state| state.end() > at);
                let state = live.unwrap_or(State::new(*bucket, at));
                let made = live.filter(|_| bucket.settled).map_or(state.made, |state| at.max(state.made + 1));
                let found = state.full_at.max(at);
                let most = at + bucket.full + longest_debt(bucket.full);
                // No bucket owes more, so a longer debt needs no exact conversion.
                let debt = state.pace.time_of(bucket.price(*cost).min(4 * LONGEST), bucket.pace);
                State { full_at: (found + debt).min(most.max(found)), made, ..state }
            }
            (Event::Paused { policy, .. }, before) => {
                let Policy::Adjustable(bucket) = policy else { unreachable!("an adjustable bucket") };
                let live = before.filter(|state| state.end() > at);
                let state = live.unwrap_or(State::new(*bucket, at));
                let least = bucket.most_missing(bucket.price(1)).unwrap_or(0);
                let full_at = state.full_at.max(at + state.pace.time_of(least, bucket.pace));
                let missing = (state.full_at - at).max(0);
                let made =
                    if bucket.settled { at.max(state.made + i128::from(live.is_some())) } else { state.made };
                let (credits, until) = (state.credits + missing, state.until.max(full_at));
                State { full_at, credits, until, made, ..state }
            }
            (_, None) => unreachable!("the first event is a charge"),
            (Event::Credited { amount, .. }, Some(state)) if state.settled => {
                State { full_at: state.full_at - amount, ..state }
            }
            (Event::Credited { amount, .. }, Some(state)) => State {
                full_at: state.full_at - amount,
                credits: state.credits + amount,
                until: state.until.max(state.full_at),
                ..state
            },
            (Event::Undone { amount, .. }, Some(state)) => State { full_at: state.full_at - amount, ..state },
            (Event::Repaired { .. }, Some(state)) => state,
            (Event::Rewound { .. } | Event::Lowered { .. }, _) => unreachable!("for a bucket that warms up"),
        };
        if !matches!(event, Event::Charged { .. } | Event::Debited { .. } | Event::Paused { .. }) {
            // Each of the remaining charges takes at least a permit.
            let permit = state.pace.micros / state.pace.permits;
            if !matches!(event, Event::Repaired { .. }) {
                state.slot = state.slot.min(state.full_at - permit);
            }
        }
        state.written = at;
        if state.slot <= at {
            state.slot = 0;
        }
        if state.credits == 0 && state.changed == 0 {
            state.until = 0;
        }
        tell(before, event, state);
        last = Some(state);
    }
    last
}

/// Returns what the bucket has lacked, whose state is this one by now.
fn lacked(history: &[Event], state: State) -> Lacked {
    let (mut lacked, mut made) = (Lacked::default(), 0);
    replay(history, |before, event, after| {
        // A clock that steps back takes the times of charges with it.
        lacked.step_back(made - before.map_or(made, |state| state.made));
        made = after.made;
        observe(&mut lacked, before, event, after);
    });
    lacked.step_back(made - state.made);
    lacked
}

/// Adds what the bucket lacked at an event.
fn observe(lacked: &mut Lacked, before: Option<State>, event: &Event, after: State) {
    match event {
        Event::Charged { at, cost, policy: Policy::Adjustable(bucket), .. } => {
            let before = before.filter(|state| state.end() > *at);
            let most = bucket.most_missing(bucket.price(*cost)).expect("it was admitted");
            match before {
                Some(state) if state.pace == bucket.pace => {
                    lacked.charge(after.made, (state.full_at - at).max(0).min(most));
                }
                _ => lacked.forget(after.made),
            }
        }
        Event::Debited { at, .. } => match before.filter(|state| state.end() > *at) {
            Some(state) => lacked.charge(after.made, (state.full_at - at).max(0)),
            None => lacked.forget(after.made),
        },
        Event::Paused { .. } => lacked.forget(after.made),
        Event::Credited { amount, stamp, .. } => lacked.credit(*stamp, *amount),
        _ => {}
    }
}
