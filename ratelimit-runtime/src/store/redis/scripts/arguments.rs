//! The arguments of the scripts, as the headers of the Lua files specify them.

use std::iter;

use redis::Cmd;
use smallvec::SmallVec;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::believed_holds::Speaker;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::interval_bucket::MOST_MISSING;
use crate::algorithm::settled_gcra::SettledGcraSpec;
use crate::algorithm::sliding_window::MOST_COUNTED;
use crate::algorithm::warming_up::MAX_COST;
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::base::calendar::Calendar;
use crate::store::account::{Message, Sent};
use crate::store::charge::Charge;
use crate::store::correction::{Correction, CorrectionKind};

/// More than any window counts or owes, and few enough that sums are exact.
const MOST_WORTH: u64 = 1 << 51;

/// The number of arguments of each correction, without that of its algorithm. Shorter ones are padded.
const WIDTH: usize = 7;

/// The arguments of a script. Those of one decision mostly fit in place.
pub(super) type Arguments = SmallVec<[Argument; 4]>;

#[derive(Clone, Debug)]
pub(super) enum Argument {
    Number(u64),
    Text(String),
    Packed(Vec<u8>),
}

impl Argument {
    pub(super) fn write(&self, command: &mut Cmd) {
        match self {
            Argument::Number(number) => command.arg(number),
            Argument::Text(text) => command.arg(text),
            Argument::Packed(packed) => command.arg(packed.as_slice()),
        };
    }
}

/// Returns the charge and the capacity of a plain bucket, in microseconds: a call that does not wait or just look, without a shadow.
pub(super) fn plain_bucket(charge: &Charge) -> Option<[u64; 2]> {
    match *charge {
        Charge {
            spec: AlgorithmSpec::Gcra(spec @ GcraSpec { kind: GcraKind::TokenBucket | GcraKind::Meter, .. }),
            cost: cost @ 1..,
            wait: 0,
            shadow: false,
            ..
        } => Some([spec.charge(cost), spec.capacity]),
        _ => None,
    }
}

/// Returns the arguments of decisions about this many plain buckets each.
pub(super) fn buckets(decisions: &[&[Charge]], size: usize) -> Arguments {
    let mut arguments = Arguments::new();
    if size != 1 {
        arguments.push(Argument::Number(size as u64));
    }
    let numbers = decisions.iter().copied().flatten().filter_map(plain_bucket);
    let mut others = numbers.clone();
    let first = others.next();
    let all_equal = others.all(|numbers| Some(numbers) == first);
    for [charge, capacity] in numbers.take(if all_equal { 1 } else { usize::MAX }) {
        arguments.push(Argument::Number(charge));
        arguments.push(Argument::Number(capacity));
    }
    arguments
}

/// Returns the arguments of `check`. A cost that never fits is cut to the smallest such cost.
pub(super) fn check(charge: &Charge, take: Option<Sent>, time: u64) -> [f64; 5] {
    let Charge { spec, cost, wait, .. } = *charge;
    let numbers = |numbers: [u64; 5]| numbers.map(|number| number as f64);
    match spec {
        AlgorithmSpec::Gcra(spec) => {
            let charge = spec.charge(cost);
            let wait = spec.max_wait(charge, wait);
            [charge as f64, spec.capacity as f64, lead(spec, cost), wait as f64, 0.0]
        }
        AlgorithmSpec::FixedWindow(spec) => {
            numbers([cost.min(spec.limit + 1), spec.limit, spec.period, u64::from(spec.aligned), 0])
        }
        AlgorithmSpec::CalendarWindow(spec) => {
            let [first, second, lengths] = starts(spec.calendar, time);
            [cost.min(spec.limit + 1) as f64, spec.limit as f64, first, second, lengths]
        }
        AlgorithmSpec::SlidingWindow(spec) => {
            numbers([cost.min(spec.limit + 1), spec.limit, spec.period, spec.precision, 0])
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            numbers([cost.min(spec.burst + 1), spec.burst, spec.refill, spec.period, wait])
        }
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
        | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
            let charge = spec.charge(cost);
            let (most, pace) = (spec.max_wait(charge, wait), AdjustableGcraSpec(spec).pace());
            [charge as f64, lead(spec, cost), most as f64, pace, wait as f64]
        }
        AlgorithmSpec::WarmingUp(spec) => {
            [cost.min(MAX_COST) as f64, spec.interval(), spec.warmup as f64, wait as f64, 0.0]
        }
        AlgorithmSpec::Holds(spec) => {
            // What differs between charges goes elsewhere, so that decisions may share their arguments.
            let (permits, ttl, waits) = match take {
                Some(sent @ Sent { message: Message::Take(take), .. }) => {
                    (take.permits, sent.ttl(), take.waits)
                }
                _ => (0, 0, false),
            };
            let ttl = if waits { -(ttl as f64) } else { ttl as f64 };
            [permits as f64, spec.max as f64, 0.0, ttl, 0.0]
        }
    }
}

/// Returns when the windows around a time begin: the first two of four times in a row, and how many seconds the third and fourth are
/// later than the one before them, in one number.
fn starts(calendar: Calendar, time: u64) -> [f64; 3] {
    let [first, second, third, fourth] = calendar.around(time);
    let seconds = |from: u64, to: u64| (to - from) / 1_000_000;
    [first as f64, second as f64, (seconds(second, third) << 26 | seconds(third, fourth)) as f64]
}

/// Returns how far the arrival time may be ahead of a call's slot, -1 if the call can never be admitted. A cost of 0 reads what one
/// of 1 would find.
fn lead(spec: GcraSpec, cost: u64) -> f64 {
    spec.lead(spec.charge(cost.max(1))).map_or(-1.0, |lead| lead as f64)
}

/// Returns the arguments of all corrections, packed: of each the number of its algorithm, how many more of its key follow, and as many
/// doubles as of the others. If there are penalties, their steps follow.
pub(super) fn corrections(of_keys: &[&[&Correction]], time: u64) -> Arguments {
    let count = of_keys.iter().map(|of_key| of_key.len()).sum::<usize>();
    let mut packed = Vec::with_capacity(count * (2 + WIDTH * size_of::<f64>()));
    let mut all_steps: Vec<f64> = Vec::new();
    let counted_down = of_keys.iter().flat_map(|of_key| of_key.iter().zip((0..of_key.len()).rev()));
    for (Correction { spec, cost, kind, .. }, more) in counted_down {
        let number = spec.kind() as i8;
        let (number, numbers) = match *kind {
            CorrectionKind::Holds(sent) => (number, message(sent)),
            CorrectionKind::Pause => (-number, pause(spec, *cost)),
            CorrectionKind::Penalty(steps) => {
                let mut numbers = pause(spec, 0);
                [numbers[WIDTH - 2], numbers[WIDTH - 1]] = [all_steps.len() as f64, steps.len() as f64];
                all_steps.extend(steps.iter().map(|step| *step as f64));
                (-number, numbers)
            }
            CorrectionKind::Debit => (number, correct(spec, *cost, None, true, time)),
            CorrectionKind::Refund(charge_id) => (number, correct(spec, *cost, charge_id, false, time)),
        };
        packed.extend([number as u8, more as u8]);
        packed.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
    }
    let all_steps: Vec<u8> = all_steps.iter().flat_map(|step| step.to_le_bytes()).collect();
    let penalties = (!all_steps.is_empty()).then_some(Argument::Packed(all_steps));
    iter::once(Argument::Packed(packed)).chain(penalties).collect()
}

/// Returns what a process says of its holds.
fn message(sent: Sent) -> [f64; WIDTH] {
    let (operation, permits, number) = match sent.message {
        // Takes are part of decisions.
        Message::Take(_) => (0, 0, 0),
        Message::Release(released) => (1, 0, released),
        Message::Extend => (2, 0, 0),
        Message::Report(permits) => (3, permits, 0),
    };
    let Speaker { process, epoch } = sent.speaker;
    [operation, permits, number, process, epoch, sent.ttl(), 0].map(|number| number as f64)
}

/// Returns the arguments of `pause`.
fn pause(spec: &AlgorithmSpec, micros: u64) -> [f64; WIDTH] {
    let numbers = |numbers: [u64; 3]| numbers.map(|number| number as f64);
    let [second, third, fourth] = match *spec {
        AlgorithmSpec::Gcra(spec) => numbers([spec.missing_after_pause(), spec.capacity, 0]),
        AlgorithmSpec::AdjustableGcra(AdjustableGcraSpec(spec))
        | AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
            [spec.missing_after_pause() as f64, AdjustableGcraSpec(spec).pace(), 0.0]
        }
        AlgorithmSpec::IntervalBucket(spec) => numbers([spec.burst, spec.refill, spec.period]),
        AlgorithmSpec::WarmingUp(spec) => [spec.interval(), spec.warmup as f64, 0.0],
        AlgorithmSpec::FixedWindow(spec) => numbers([spec.period, u64::from(spec.aligned), 0]),
        AlgorithmSpec::CalendarWindow(spec) => numbers([spec.calendar.average(), 0, 0]),
        AlgorithmSpec::SlidingWindow(spec) => numbers([spec.period, spec.precision, 0]),
        AlgorithmSpec::Holds(_) => [0.0; 3],
    };
    [micros as f64, second, third, fourth, 0.0, 0.0, 0.0]
}

/// Returns the arguments of `correct`. A debt is a negative cost, with the most that may be owed in place of what identifies a charge.
fn correct(
    spec: &AlgorithmSpec,
    cost: u64,
    charge_id: Option<ChargeId>,
    owes: bool,
    time: u64,
) -> [f64; WIDTH] {
    let of = |cost: u64| if owes { -(cost as f64) } else { cost as f64 };
    let given = |number: Option<u64>| number.map_or(f64::NAN, |number| number as f64);
    let at = |most: u64| if owes { most as f64 } else { given(charge_id.map(|charge_id| charge_id.at)) };
    let level = given(charge_id.map(|charge_id| charge_id.level));
    let credited = given(charge_id.map(|charge_id| charge_id.credited));
    match *spec {
        AlgorithmSpec::Gcra(spec) => {
            let last_only = f64::from(u8::from(spec.kind == GcraKind::Queue));
            let (charge, at) = (of(spec.worth(cost)), at(spec.most_missing()));
            [charge, at, credited, spec.capacity as f64, spec.interval as f64, last_only, 0.0]
        }
        AlgorithmSpec::AdjustableGcra(adjustable) => {
            let AdjustableGcraSpec(spec) = adjustable;
            let last_only = f64::from(u8::from(spec.kind == GcraKind::Queue));
            let (charge, at) = (of(spec.worth(cost)), at(spec.most_missing()));
            [charge, at, level, credited, adjustable.pace(), last_only, 0.0]
        }
        AlgorithmSpec::SettledGcra(SettledGcraSpec(spec)) => {
            let pace = AdjustableGcraSpec(spec).pace();
            [of(spec.worth(cost)), at(spec.most_missing()), level, pace, 0.0, 0.0, 0.0]
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            // Another call may have charged more than this bucket holds.
            let (cost, at) = (of(cost.min(MOST_MISSING)), at(spec.longest_debt()));
            [cost, at, level, credited, spec.burst as f64, spec.refill as f64, spec.period as f64]
        }
        AlgorithmSpec::WarmingUp(spec) => {
            let stored = charge_id.map_or(f64::NAN, |charge_id| f64::from_bits(charge_id.level));
            [cost.min(MAX_COST) as f64, at(0), stored, spec.interval(), spec.warmup as f64, 0.0, 0.0]
        }
        AlgorithmSpec::FixedWindow(spec) => {
            let aligned = f64::from(u8::from(spec.aligned));
            let (cost, at) = (of(cost.min(MOST_WORTH)), at(spec.most_owed()));
            [cost, at, spec.period as f64, aligned, spec.limit as f64, 0.0, 0.0]
        }
        AlgorithmSpec::CalendarWindow(spec) => {
            let (cost, at) = (of(cost.min(MOST_WORTH)), at(spec.most_used()));
            let [first, second, lengths] = starts(spec.calendar, time);
            [cost, at, first, second, lengths, spec.limit as f64, 0.0]
        }
        AlgorithmSpec::SlidingWindow(spec) => {
            let (cost, at) = (of(cost.min(MOST_WORTH)), at(MOST_COUNTED));
            [cost, at, spec.period as f64, spec.precision as f64, 0.0, 0.0, 0.0]
        }
        AlgorithmSpec::Holds(_) => [0.0; WIDTH],
    }
}
