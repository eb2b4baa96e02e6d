//! The arguments of the script for all lists, as `lua/plain.lua` specifies them.

use std::io::Write;

use super::arguments::{Argument, Arguments, check};
use crate::algorithm::AlgorithmSpec;
use crate::store::account::{Message, Sent};
use crate::store::charge::Charge;
use crate::store::judge::line_of;

/// The number of arguments of a charge.
const WIDTH: usize = 6;

/// A byte numbers at most so many arguments of a decision.
const MOST_NUMBERED: usize = 255;

/// The arguments of a charge.
#[derive(Clone, Copy, Debug)]
struct Row {
    kind: i8,
    numbers: [f64; 5],
    /// Whether the last argument is the charge as text, which `INCRBY` takes faster than a number.
    has_text: bool,
    is_of_holds: bool,
}

/// Returns the arguments of decisions about any charges. `time` is about that of the server, by which calendars choose what they send.
pub(super) fn lists(
    decisions: &[&[Charge]],
    mut takes: impl Iterator<Item = Option<Sent>>,
    time: u64,
) -> Arguments {
    let mut rows = Vec::with_capacity(decisions.iter().map(|charges| charges.len()).sum());
    let mut who: Vec<u8> = Vec::new();
    for charges in decisions {
        let line = line_of(charges);
        for (index, charge) in charges.iter().enumerate() {
            let take = if charge.is_take() { takes.next().flatten() } else { None };
            rows.push(Row::of(charge, line.is_some_and(|line| line != index), take, time));
            if charge.is_take() {
                who.extend(who_takes(take).iter().flat_map(|number| number.to_le_bytes()));
            }
        }
    }
    let (size, mut arguments) = (decisions.first().map_or(0, |charges| charges.len()), Arguments::new());
    if are_alike(decisions, &rows) {
        group(size, &rows, &mut arguments);
    } else {
        let mut rest = rows.as_slice();
        for charges in decisions {
            let (rows, after) = rest.split_at(charges.len());
            group(rows.len(), rows, &mut arguments);
            rest = after;
        }
    }
    arguments.extend((!who.is_empty()).then_some(Argument::Packed(who)));
    arguments
}

/// Whether all decisions have the same format, and may share arguments.
fn are_alike(decisions: &[&[Charge]], rows: &[Row]) -> bool {
    let [first, others @ ..] = decisions else { return true };
    let size = first.len();
    others.is_empty()
        || size > 0
            && size * WIDTH <= MOST_NUMBERED
            && others.iter().all(|charges| charges.len() == size)
            && rows.iter().zip(&rows[size..]).all(|(row, next)| row.has_text == next.has_text)
}

/// Adds the arguments of decisions that have the same format: all of the first, and of the others those that differ between them.
fn group(size: usize, rows: &[Row], arguments: &mut Arguments) {
    let (first, others) = rows.split_at(size);
    let mut packed = Vec::with_capacity(rows.len() * 48);
    let columns = 0..size * WIDTH;
    let mut format = String::with_capacity(columns.len() + 1);
    format.push('<');
    format.extend(columns.clone().map(|column| first[column / WIDTH].format(column % WIDTH)));
    columns.clone().for_each(|column| first[column / WIDTH].pack(column % WIDTH, &mut packed));

    let differs = |column: &usize| {
        let (charge, argument) = (column / WIDTH, column % WIDTH);
        let mut rows = others.iter().skip(charge).step_by(size);
        rows.any(|row| row.differs(&first[charge], argument) || row.is_written(&first[charge], argument))
    };
    let differing: Vec<usize> =
        if others.is_empty() { Vec::new() } else { columns.filter(differs).collect() };
    if !differing.is_empty() {
        packed.push(b'<');
        packed.extend(differing.iter().map(|column| first[column / WIDTH].format(column % WIDTH) as u8));
        packed.push(0);
        packed.extend(differing.iter().map(|column| *column as u8 + 1));
        for rows in others.chunks(size) {
            differing.iter().for_each(|column| rows[column / WIDTH].pack(column % WIDTH, &mut packed));
        }
    }
    arguments.extend([Argument::Number(size as u64), Argument::Text(format), Argument::Packed(packed)]);
}

impl Row {
    /// The maximum wait says if the call starts at the slot of another charge. Numbers of up to 2^53 are exact.
    fn of(charge: &Charge, joins_other: bool, take: Option<Sent>, time: u64) -> Self {
        let kind = charge.spec.kind() as i8;
        let mut numbers = check(charge, take, time);
        let has_text = matches!(charge.spec, AlgorithmSpec::Gcra(_));
        if has_text && joins_other {
            numbers[3] = -1.0 - numbers[3];
        }
        let is_of_holds = matches!(charge.spec, AlgorithmSpec::Holds(_));
        Row { kind: if charge.shadow { -kind } else { kind }, numbers, has_text, is_of_holds }
    }

    /// Returns the format of an argument, as of Lua's `struct.unpack`.
    fn format(&self, argument: usize) -> char {
        match argument {
            0 => 'b',
            5 if self.has_text => 's',
            _ => 'd',
        }
    }

    fn pack(&self, argument: usize, packed: &mut Vec<u8>) {
        match argument {
            0 => packed.push(self.kind as u8),
            5 if self.has_text => _ = write!(packed, "{}\0", self.numbers[0]),
            _ => packed.extend(self.numbers[argument - 1].to_le_bytes()),
        }
    }

    /// Whether the script may have written an argument for another decision that this one does not: it does so for each charge of holds
    /// that costs something.
    fn is_written(&self, other: &Row, argument: usize) -> bool {
        let is_other = self.kind != other.kind || self.numbers[0] != other.numbers[0];
        matches!(argument, 3 | 5) && (self.is_of_holds || other.is_of_holds) && is_other
    }

    fn differs(&self, other: &Row, argument: usize) -> bool {
        match argument {
            0 => self.kind != other.kind,
            5 if self.has_text => self.numbers[0] != other.numbers[0],
            _ => self.numbers[argument - 1] != other.numbers[argument - 1],
        }
    }
}

/// Returns how many permits a process has released that takes some, negative and one less if it has a share already, and the field of its
/// share: the process and its epoch.
fn who_takes(take: Option<Sent>) -> [f64; 3] {
    let Some(Sent { speaker, message: Message::Take(take), .. }) = take else { return [0.0; 3] };
    let released = take.released as f64;
    let released = if take.has_share { -1.0 - released } else { released };
    [released, speaker.process as f64, speaker.epoch as f64]
}
