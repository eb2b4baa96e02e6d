//! The reference model, written from the promises of the documentation and sharing no code with the library. It keeps every
//! event of a key and computes the state from all of them at each step, in `i128`, or in doubles where the promise is in
//! doubles.

mod adjustable;
mod bucket;
mod calendar_window;
mod fixed_window;
mod holds;
mod interval_bucket;
mod lacked;
mod pauses;
mod policy;
mod queue;
mod sliding_window;
mod warming_up;

use std::collections::HashMap;

use pauses::Pauses;

pub(crate) use adjustable::{AdjustableBucket, AdjustableKind, Pace};
pub(crate) use calendar_window::starts;
pub(crate) use holds::UNKNOWN;
pub(crate) use pauses::DatedReceipt;
pub(crate) use policy::Policy;

/// The longest debt of one call, in microseconds.
const LONGEST: i128 = 3650 * 86_400 * 1_000_000;

/// The shortest time that the longest debt lasts, in microseconds.
const DAY: i128 = 86_400 * 1_000_000;

/// Returns how long a debt lasts at most that is left of a policy which recovers in this time.
fn longest_debt(recovery: i128) -> i128 {
    (10 * recovery).clamp(DAY, 2 * LONGEST)
}

/// An event in the life of a key.
#[derive(Clone, Copy, Debug)]
enum Event {
    Charged {
        at: i128,
        /// When its call starts: later only if another bucket makes it wait.
        start: i128,
        cost: i128,
        /// The numbers of the call.
        policy: Policy,
    },
    /// A refund: microseconds of refill in a bucket, permits elsewhere. In a sliding window, of the charge with this stamp; in a
    /// bucket that remembers what it lacked, of the one that was made then.
    Credited { at: i128, amount: i128, stamp: Option<i128> },
    /// A complete refund of the last charge, as if it had never been made: microseconds of refill or permits.
    Undone { at: i128, amount: i128 },
    /// The same for a bucket that warms up, with what the charge had found.
    Rewound { at: i128, warmth: Warmth, policy: Policy },
    /// A refund without a receipt to a bucket that warms up, in microseconds.
    Lowered { at: i128, amount: i128, policy: Policy },
    /// A debt: permits that a call has used beyond its cost.
    Debited { at: i128, cost: i128, policy: Policy },
    /// A call found a state from the future and moved it to now.
    Repaired { at: i128, policy: Policy },
    /// The clock of a bucket stands still. When it goes on, the bucket has one permit at most.
    Paused { at: i128, policy: Policy },
}

impl Event {
    fn at(&self) -> i128 {
        match self {
            Event::Charged { at, .. }
            | Event::Credited { at, .. }
            | Event::Undone { at, .. }
            | Event::Rewound { at, .. }
            | Event::Lowered { at, .. }
            | Event::Debited { at, .. }
            | Event::Repaired { at, .. }
            | Event::Paused { at, .. } => *at,
        }
    }
}

/// What one policy decides about one charge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub(crate) admitted: bool,
    /// The time until the slot of an admitted call.
    pub(crate) wait: i128,
    pub(crate) limit: i128,
    pub(crate) remaining: i128,
    pub(crate) retry_after: Option<i128>,
    pub(crate) reset_after: i128,
}

/// The state of a bucket that warms up: when the next call can go, and the permits stored then.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Warmth {
    next: i128,
    stored: f64,
}

/// What identifies a charge in a refund.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Receipt {
    /// When the bucket would be full if nothing happened after the charge, and the refunds until then.
    Full { at: i128, credits: i128 },
    /// The same for a bucket whose rate can change, with the time of the charge.
    FullAtPace { at: i128, credits: i128, made: i128 },
    /// The permits missing right after the charge, the time of the last refill, the refunds until then, and the time of
    /// the charge.
    Missing { missing: i128, since: i128, credits: i128, made: i128 },
    /// The state before and after the charge.
    Warmth { before: Warmth, after: Warmth },
    /// The time of the window's first charge.
    Window(i128),
    /// The time of the charge, or of the first one in its sub-window.
    Stamp(i128),
}

pub(crate) struct Charge<'a> {
    pub(crate) key: &'a str,
    pub(crate) policy: Policy,
    pub(crate) cost: i128,
    pub(crate) max_wait: i128,
    /// Whether this charge never refuses the call. It is made with the others if its own policy admits it.
    pub(crate) shadow: bool,
}

pub(crate) struct Outcome {
    pub(crate) admitted: bool,
    pub(crate) verdicts: Vec<Verdict>,
    /// One for each charge that was made.
    pub(crate) receipts: Vec<Option<DatedReceipt>>,
    /// Whether each key may have been written, by a charge or a repair.
    pub(crate) written: Vec<bool>,
    /// Whether each charge was made for the slot of another one.
    pub(crate) moved: Vec<bool>,
    /// When the pause of each key ends, if it is paused.
    pub(crate) paused_until: Vec<Option<i128>>,
    /// How many penalties of each key are not forgiven.
    pub(crate) penalties: Vec<i128>,
}

/// The effect of a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refund {
    /// Microseconds of refill in a bucket, permits elsewhere.
    Of(i128),
    /// Everything that the charge took.
    All,
}

/// What an algorithm promises, given all events of a key.
trait Algorithm {
    /// Returns the most permits available at once.
    fn limit(&self) -> i128;

    /// Returns the least that a charge takes: microseconds of refill from a bucket that refills continuously, else permits.
    fn price(&self, cost: i128) -> i128 {
        cost
    }

    fn verdict(&self, history: &[Event], now: i128, cost: i128, max_wait: i128) -> Verdict;

    /// Returns how long a call waits at most for a key that is paused if it may wait for so long, or `None` if none does.
    fn longest_wait(&self, _cost: i128, max_wait: i128) -> Option<i128> {
        Some(max_wait)
    }

    /// Returns whether calls that are refused may only be too far from the start of a line.
    fn is_queue(&self) -> bool {
        false
    }

    /// Returns the receipt of the last event, a charge.
    fn receipt(&self, history: &[Event]) -> Receipt;

    /// Returns the events that a refund adds: one, or none, or in a sliding window one for each stamp.
    fn credits(&self, history: &[Event], now: i128, cost: i128, receipt: Option<Receipt>) -> Vec<Event>;

    fn is_in_the_future(&self, history: &[Event], now: i128) -> bool;

    /// Returns when the state expires, or `None` if there is none.
    fn end(&self, history: &[Event]) -> Option<i128>;

    fn has_expired(&self, history: &[Event], now: i128) -> bool {
        self.end(history).is_none_or(|end| end <= now)
    }
}

#[derive(Default)]
pub(crate) struct Model {
    keys: HashMap<String, Life>,
}

/// What has happened to a key.
#[derive(Default)]
struct Life {
    /// By the clock of the key.
    events: Vec<Event>,
    pauses: Pauses,
    /// How often the key has been reset.
    resets: usize,
}

impl Model {
    /// Makes all charges, except for shadows that their policies refuse, or none. A charge of cost 0 only reads. If all are such,
    /// they say what calls of cost 1 that do not wait would get.
    pub(crate) fn decide(&mut self, now: i128, charges: &[Charge<'_>]) -> Outcome {
        let only_reads = charges.iter().all(|charge| charge.cost == 0);
        let verdict = |charge: &Charge<'_>, cost| {
            let verdict = self.verdict(now, charge.key, charge.policy, cost, charge.max_wait);
            if !only_reads {
                return verdict;
            }
            let Verdict { admitted, retry_after, .. } = self.verdict(now, charge.key, charge.policy, 1, 0);
            Verdict { admitted, retry_after, ..verdict }
        };
        let mut verdicts: Vec<Verdict> = charges.iter().map(|charge| verdict(charge, charge.cost)).collect();
        let mut moved = vec![false; charges.len()];
        if all_admitted(charges, &verdicts)
            && let Some(line) = line(charges)
        {
            let wait = verdicts[line].wait;
            let late = |verdict: &Verdict| verdict.wait > wait;
            if charges.iter().zip(&verdicts).any(|(charge, verdict)| !charge.shadow && late(verdict)) {
                for (charge, it) in
                    charges.iter().zip(&mut verdicts).filter(|(charge, it)| !charge.shadow && late(it))
                {
                    *it =
                        Verdict { admitted: false, retry_after: Some(it.wait - wait), ..verdict(charge, 0) };
                }
            } else if wait > 0 {
                for (i, charge) in charges.iter().enumerate() {
                    if i != line && charge.cost > 0 && !charge.shadow {
                        let bucket = charge.policy.literal_bucket().expect("all are");
                        let (left, time) = self.clock(now, charge.key, charge.policy);
                        let start = time + wait - left;
                        let it = bucket.verdict_at(self.history(charge.key), time, charge.cost, start);
                        let remaining = if left > 0 { 0 } else { it.remaining };
                        verdicts[i] = Verdict { wait, remaining, reset_after: left + it.reset_after, ..it };
                        moved[i] = true;
                    }
                }
            }
        }
        let fits: Vec<bool> = verdicts.iter().map(|verdict| verdict.admitted).collect();
        let admitted = all_admitted(charges, &verdicts);
        if !admitted {
            // Nothing is charged, so policies that would have admitted report the state as it is.
            for (charge, it) in charges.iter().zip(&mut verdicts).filter(|(_, it)| it.admitted) {
                *it = verdict(charge, 0);
            }
        }
        let paused_until = charges.iter().map(|charge| self.paused_until(now, charge.key)).collect();
        let penalties = charges.iter().map(|charge| self.pauses(charge.key).step(now)).collect();
        let mut receipts = Vec::new();
        let mut written = Vec::new();
        for (i, (Charge { key, policy, cost, .. }, fits)) in charges.iter().zip(fits).enumerate() {
            let algorithm = policy.algorithm();
            let (left, time) = self.clock(now, key, *policy);
            let is_in_the_future = algorithm.is_in_the_future(self.history(key), time);
            let repaired = *cost > 0 && (is_in_the_future || self.pauses(key).are_from_the_future(now));
            if repaired {
                self.write(
                    key,
                    now,
                    is_in_the_future.then_some(Event::Repaired { at: time, policy: *policy }),
                );
            }
            let charged = admitted && fits && *cost > 0;
            if charged {
                let start = if moved[i] { time + verdicts[i].wait - left } else { time };
                self.write(key, now, [Event::Charged { at: time, start, cost: *cost, policy: *policy }]);
                self.life(key).pauses.admit();
            }
            let (pauses, resets) = (self.pauses(key).count, self.resets(key));
            let receipt = charged.then(|| algorithm.receipt(self.history(key)));
            receipts.push(receipt.map(|receipt| DatedReceipt { receipt, pauses, resets }));
            written.push(repaired || charged);
        }
        Outcome { admitted, verdicts, receipts, written, moved, paused_until, penalties }
    }

    /// Refunds permits. Returns `None` if there was nothing to give back.
    pub(crate) fn refund(
        &mut self,
        now: i128,
        key: &str,
        policy: Policy,
        cost: i128,
        receipt: Option<DatedReceipt>,
    ) -> Option<Refund> {
        let algorithm = policy.algorithm();
        let is_void = |receipt: DatedReceipt| {
            self.has_voided(key, policy, receipt)
                || matches!(policy, Policy::Holds { .. }) && receipt.resets < self.resets(key)
        };
        if receipt.is_some_and(is_void) {
            return None;
        }
        let (_, time) = self.clock(now, key, policy);
        let receipt = receipt.map(|receipt| receipt.receipt);
        let credits = algorithm.credits(self.history(key), time, cost, receipt);
        if credits.is_empty() {
            return None;
        }
        self.write(key, now, credits.iter().copied());
        if algorithm.has_expired(self.history(key), time) {
            let life = self.life(key);
            life.events.clear();
            // Nothing is left that would tell of the last penalty.
            if life.pauses.last_end().is_some_and(|end| end <= now) {
                life.pauses.admit();
            }
        }
        credits.last().map(|event| match event {
            Event::Credited { amount, .. } | Event::Undone { amount, .. } | Event::Lowered { amount, .. } => {
                Refund::Of(*amount)
            }
            _ => Refund::All,
        })
    }

    /// Charges a debt.
    pub(crate) fn debit(&mut self, now: i128, key: &str, policy: Policy, cost: i128) {
        let (_, at) = self.clock(now, key, policy);
        self.write(key, now, [Event::Debited { at, cost, policy }]);
    }

    /// Returns for how long the clock of a key has stood still.
    pub(crate) fn stood_still(&self, key: &str) -> i128 {
        self.pauses(key).stood_still
    }

    /// Returns whether a receipt is from before a pause, which has voided it.
    pub(crate) fn has_voided(&self, key: &str, policy: Policy, receipt: DatedReceipt) -> bool {
        !policy.is_window() && receipt.pauses < self.pauses(key).count
    }

    /// Pauses a key. Returns how much longer it is paused by that, or `None` if it is not.
    pub(crate) fn pause(&mut self, now: i128, key: &str, policy: Policy, micros: i128) -> Option<i128> {
        let (left, at) = self.clock(now, key, policy);
        let life = self.life(key);
        if !life.pauses.extend(now, micros) {
            return None;
        }
        if !policy.is_window() {
            life.events.push(Event::Paused { at, policy });
            if policy.algorithm().has_expired(&life.events, at) {
                life.events.clear();
            }
        }
        Some(micros - left)
    }

    /// Pauses a key that has refused a call, as its next step says. Returns the number of that, and how much longer the key is paused by
    /// it, unless the refusal is no penalty.
    pub(crate) fn penalize(
        &mut self,
        now: i128,
        key: &str,
        policy: Policy,
        steps: &[i128],
    ) -> Option<(usize, i128)> {
        let step = self.pauses(key).next_step(now, steps.len())?;
        let longer = self.pause(now, key, policy, steps[step - 1])?;
        self.life(key).pauses.penalize(step, *steps.last()?);
        Some((step, longer))
    }

    /// Whether nothing is left of what a key has admitted, so that no call of a cost that fits is refused.
    pub(crate) fn is_free(&self, now: i128, key: &str, policy: Policy) -> bool {
        let (_, time) = self.clock(now, key, policy);
        policy.algorithm().has_expired(self.history(key), time)
    }

    /// Returns when the pause of a key ends, if that is later than now.
    pub(crate) fn paused_until(&self, now: i128, key: &str) -> Option<i128> {
        let pauses = self.pauses(key);
        (pauses.left(now) > 0).then(|| pauses.end(now))
    }

    /// Returns the verdict about a charge, without making it.
    pub(crate) fn verdict(
        &self,
        now: i128,
        key: &str,
        policy: Policy,
        cost: i128,
        max_wait: i128,
    ) -> Verdict {
        let (left, time) = self.clock(now, key, policy);
        let (algorithm, history) = (policy.algorithm(), self.history(key));
        if left == 0 {
            return algorithm.verdict(history, time, cost, max_wait);
        }
        let at_end = |cost, max_wait| algorithm.verdict(history, time, cost, max_wait);
        pauses::verdict(&*algorithm, left, cost, max_wait, at_end)
    }

    pub(crate) fn reset(&mut self, key: &str) {
        let life = self.life(key);
        *life = Life { resets: life.resets + 1, ..Life::default() };
    }

    /// Returns when the key's state expires, or `None` if there is none.
    pub(crate) fn end(&self, key: &str, policy: Policy) -> Option<i128> {
        let pauses = self.pauses(key);
        let end = policy.algorithm().end(self.history(key)).map(|end| pauses.real(policy, end));
        end.max(pauses.last_end())
    }

    /// Returns the number of events of a key, for [`Model::rewind`].
    pub(crate) fn events(&self, key: &str) -> usize {
        self.history(key).len()
    }

    /// Removes all later events of a key.
    pub(crate) fn rewind(&mut self, key: &str, events: usize) {
        self.life(key).events.truncate(events);
    }

    fn history(&self, key: &str) -> &[Event] {
        self.keys.get(key).map_or(&[], |life| &life.events)
    }

    fn pauses(&self, key: &str) -> Pauses {
        self.keys.get(key).map_or(Pauses::default(), |life| life.pauses)
    }

    fn resets(&self, key: &str) -> usize {
        self.keys.get(key).map_or(0, |life| life.resets)
    }

    /// Returns how much is left of the pause of a key, and the time by its own clock.
    fn clock(&self, now: i128, key: &str, policy: Policy) -> (i128, i128) {
        let pauses = self.pauses(key);
        (pauses.left(now), pauses.time(policy, now))
    }

    fn life(&mut self, key: &str) -> &mut Life {
        self.keys.entry(key.to_owned()).or_default()
    }

    fn write(&mut self, key: &str, now: i128, events: impl IntoIterator<Item = Event>) {
        let life = self.life(key);
        life.pauses.write(now);
        life.events.extend(events);
    }
}

fn all_admitted(charges: &[Charge<'_>], verdicts: &[Verdict]) -> bool {
    charges.iter().zip(verdicts).all(|(charge, verdict)| charge.shadow || verdict.admitted)
}

/// Returns the charge at whose slot a call starts that may wait and has to be admitted by several buckets with literal numbers: the
/// only queue, or else the fastest one that it may wait for.
fn line(charges: &[Charge<'_>]) -> Option<usize> {
    let required = || charges.iter().enumerate().filter(|(_, charge)| charge.cost > 0 && !charge.shadow);
    let is_literal =
        |policy| matches!(policy, Policy::Bucket { .. } | Policy::Borrowing { .. } | Policy::Queue { .. });
    if required().count() < 2 || !required().all(|(_, charge)| is_literal(charge.policy)) {
        return None;
    }
    let mut queues = required().filter(|(_, charge)| matches!(charge.policy, Policy::Queue { .. }));
    if let Some((index, queue)) = queues.next() {
        return (queues.next().is_none() && queue.max_wait > 0).then_some(index);
    }
    let interval = |policy| match policy {
        Policy::Bucket { permit, .. } => permit,
        Policy::Borrowing { permits, period_ns, .. } => ceil(period_ns, permits * 1000),
        _ => unreachable!("it is a literal bucket"),
    };
    let may_wait = required().filter(|(_, charge)| charge.max_wait > 0);
    may_wait.min_by_key(|(_, charge)| interval(charge.policy)).map(|(index, _)| index)
}

fn ceil(dividend: i128, divisor: i128) -> i128 {
    (dividend + divisor - 1).div_euclid(divisor)
}
