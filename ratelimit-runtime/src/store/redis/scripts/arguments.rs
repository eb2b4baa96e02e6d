//! The arguments of the scripts, as the headers of the Lua files specify them.

use std::borrow::Cow;
use std::iter;

use redis::Cmd;
use smallvec::SmallVec;

use crate::algorithm::adjustable_gcra::AdjustableGcraSpec;
use crate::algorithm::fixed_window::FixedWindowSpec;
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::interval_bucket::MOST_MISSING;
use crate::algorithm::sliding_window::SlidingWindowSpec;
use crate::algorithm::warming_up::MAX_COST;
use crate::algorithm::{AlgorithmSpec, ChargeId};
use crate::base::bounds::MAX_PERMITS;
use crate::store::charge::Charge;

/// The number of arguments of each check in the mixed script, after the name of its algorithm. Shorter ones are padded.
const MIXED_WIDTH: usize = 5;

/// The number of arguments of each refund. Shorter ones are padded.
const REFUND_WIDTH: usize = 7;

#[derive(Clone, Debug)]
pub(super) enum Argument {
    Number(u64),
    Text(Cow<'static, str>),
}

impl Argument {
    const EMPTY: Argument = Argument::Text(Cow::Borrowed(""));

    pub(super) fn write(&self, command: &mut Cmd) {
        match self {
            Argument::Number(number) => command.arg(number),
            Argument::Text(text) => command.arg(&**text),
        };
    }
}

impl From<u64> for Argument {
    fn from(number: u64) -> Self {
        Argument::Number(number)
    }
}

impl From<Option<u64>> for Argument {
    fn from(number: Option<u64>) -> Self {
        number.map_or(Argument::EMPTY, Argument::Number)
    }
}

impl From<f64> for Argument {
    /// Writes the shortest text that parses as exactly this number.
    fn from(number: f64) -> Self {
        Argument::Text(number.to_string().into())
    }
}

/// Whether a first pass can decide a charge, if its state is plain.
pub(super) fn is_plain(charge: &Charge) -> bool {
    plain_check(charge).is_some()
}

/// Returns the arguments of a charge in the first pass of its algorithm, if it has one that can decide the charge.
fn plain_check(charge: &Charge) -> Option<SmallVec<[u64; 4]>> {
    match *charge {
        Charge { cost: 0, .. } | Charge { shadow: true, .. } => None,
        Charge {
            spec: AlgorithmSpec::Gcra(spec @ GcraSpec { kind: GcraKind::TokenBucket | GcraKind::Meter, .. }),
            cost,
            wait: 0,
            ..
        } => Some([spec.charge(cost), spec.capacity].as_slice().into()),
        Charge { spec: AlgorithmSpec::FixedWindow(spec), cost, .. } => {
            Some(fixed_window_check(spec, cost).into())
        }
        Charge { spec: AlgorithmSpec::SlidingWindow(spec), cost, .. } => {
            Some(sliding_window_check(spec, cost).into())
        }
        _ => None,
    }
}

/// Returns the arguments of decisions of this size in the first pass of their algorithm, which can decide all of them.
pub(super) fn plain_checks<'a>(
    decisions: impl Iterator<Item = &'a [Charge]> + Clone,
    size: usize,
) -> Vec<Argument> {
    let mut charges = decisions.clone().flatten();
    let first = charges.next();
    let all_equal = charges.all(|charge| first.is_some_and(|first| has_same_check(charge, first)));
    let checks = decisions.flatten().take(if all_equal { 1 } else { usize::MAX }).filter_map(plain_check);
    let size = (size != 1).then_some(size as u64);
    size.into_iter().chain(checks.flatten()).map(Argument::from).collect()
}

fn has_same_check(charge: &Charge, other: &Charge) -> bool {
    charge.spec == other.spec && charge.cost == other.cost
}

/// Returns the number of charges, or if there are shadows a letter for each charge.
pub(super) fn kinds(charges: &[Charge]) -> Argument {
    if charges.iter().any(|charge| charge.shadow) {
        Argument::Text(charges.iter().map(|charge| if charge.shadow { 's' } else { 'r' }).collect())
    } else {
        Argument::Number(charges.len() as u64)
    }
}

/// Returns the arguments of `check` in the script of all algorithms.
pub(super) fn mixed_check(charge: &Charge) -> impl Iterator<Item = Argument> {
    let name = Argument::Text(charge.spec.name().into());
    let arguments = check(charge);
    let padding = iter::repeat_n(Argument::EMPTY, MIXED_WIDTH - arguments.len());
    iter::once(name).chain(arguments).chain(padding)
}

/// Returns the arguments of `check`. A cost that never fits is cut to the smallest such cost, which Lua represents exactly.
pub(super) fn check(charge: &Charge) -> Vec<Argument> {
    let Charge { spec, cost, wait, .. } = *charge;
    match spec {
        AlgorithmSpec::Gcra(spec) => {
            let charge = spec.charge(cost);
            vec![charge.into(), spec.capacity.into(), lead(spec, cost), spec.max_wait(charge, wait).into()]
        }
        AlgorithmSpec::AdjustableGcra(adjustable) => {
            let AdjustableGcraSpec(spec) = adjustable;
            let charge = spec.charge(cost);
            let wait = spec.max_wait(charge, wait);
            vec![charge.into(), lead(spec, cost), wait.into(), adjustable.pace().into()]
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            [cost.min(spec.burst + 1), spec.burst, spec.refill, spec.period, wait]
                .map(Argument::from)
                .to_vec()
        }
        AlgorithmSpec::WarmingUp(spec) => {
            vec![cost.min(MAX_COST).into(), spec.interval().into(), spec.warmup.into(), wait.into()]
        }
        AlgorithmSpec::FixedWindow(spec) => fixed_window_check(spec, cost).map(Argument::from).to_vec(),
        AlgorithmSpec::SlidingWindow(spec) => sliding_window_check(spec, cost).map(Argument::from).to_vec(),
    }
}

/// Returns how far the arrival time may be ahead of a call's slot. A cost of 0 reads what one of 1 would find.
fn lead(spec: GcraSpec, cost: u64) -> Argument {
    let lead = spec.lead(spec.charge(cost.max(1)));
    lead.map_or(Argument::Text("-1".into()), Argument::Number)
}

fn fixed_window_check(spec: FixedWindowSpec, cost: u64) -> [u64; 4] {
    [cost.min(spec.limit + 1), spec.limit, spec.period, u64::from(spec.aligned)]
}

fn sliding_window_check(spec: SlidingWindowSpec, cost: u64) -> [u64; 4] {
    [cost.min(spec.limit + 1), spec.limit, spec.period, spec.precision]
}

/// Returns the arguments of `refund`.
pub(super) fn refund(spec: &AlgorithmSpec, cost: u64, charge_id: Option<ChargeId>) -> Vec<Argument> {
    let at = Argument::from(charge_id.map(|charge_id| charge_id.at));
    let level = Argument::from(charge_id.map(|charge_id| charge_id.level));
    let credited = Argument::from(charge_id.map(|charge_id| charge_id.credited));
    let mut arguments = match *spec {
        AlgorithmSpec::Gcra(spec) => {
            let last_only = u64::from(spec.kind == GcraKind::Queue);
            let numbers = [spec.capacity, spec.interval, last_only].map(Argument::from);
            [spec.charge(cost).into(), at, credited].into_iter().chain(numbers).collect()
        }
        AlgorithmSpec::AdjustableGcra(adjustable) => {
            let AdjustableGcraSpec(spec) = adjustable;
            let last_only = u64::from(spec.kind == GcraKind::Queue).into();
            vec![adjustable.refundable(cost).into(), at, level, credited, adjustable.pace().into(), last_only]
        }
        AlgorithmSpec::IntervalBucket(spec) => {
            let numbers = [spec.burst, spec.refill, spec.period].map(Argument::from);
            // Another call may have charged more than this bucket holds.
            [cost.min(MOST_MISSING).into(), at, level, credited].into_iter().chain(numbers).collect()
        }
        AlgorithmSpec::WarmingUp(spec) => {
            let stored =
                charge_id.map_or(Argument::EMPTY, |charge_id| f64::from_bits(charge_id.level).into());
            vec![cost.min(MAX_COST).into(), at, stored, spec.interval().into(), spec.warmup.into()]
        }
        AlgorithmSpec::FixedWindow(spec) => {
            vec![cost.min(MAX_PERMITS).into(), at, spec.period.into(), u64::from(spec.aligned).into()]
        }
        AlgorithmSpec::SlidingWindow(spec) => {
            vec![cost.min(MAX_PERMITS).into(), at, spec.period.into(), spec.precision.into()]
        }
    };
    arguments.resize(REFUND_WIDTH, Argument::EMPTY);
    arguments
}
