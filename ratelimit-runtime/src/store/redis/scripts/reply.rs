//! Parses the replies of the scripts.

use std::vec::IntoIter;

use redis::Value;
use smallvec::SmallVec;

use crate::algorithm::believed_holds::Believed;
use crate::algorithm::holds::HoldsSpec;
use crate::algorithm::{AlgorithmSpec, Pause, Penalty, Snapshot, Verdict};
use crate::store::charge::{Charge, INLINE, Outcome, Pauses, Snapshots, is_peek};
use crate::store::correction::Corrected;
use crate::store::error::StoreError;
use crate::store::redis::error_code::{is_permanent, message};

/// The largest number of a script: up to here Lua represents integers exactly.
const MAX_NUMBER: u64 = 1 << 53;

/// Returns the outcome of each decision of a reply, or of the first ones: a script that would take long does not make the rest.
pub(in crate::store::redis) fn outcomes(
    decisions: &[&[Charge]],
    reply: Value,
) -> Result<Vec<Result<Box<Outcome>, StoreError>>, StoreError> {
    let mut reply = ReplyReader::new(reply)?;
    let mut outcomes = Vec::with_capacity(decisions.len());
    for charges in decisions {
        if !outcomes.is_empty() && reply.values.as_slice().is_empty() {
            break;
        }
        outcomes.push(reply.outcome(charges)?);
    }
    reply.finish()?;
    Ok(outcomes)
}

/// Returns the time around which a script asks for the windows of calendars, in place of a decision.
pub(in crate::store::redis) fn time_asked_for<T>(result: &Result<T, StoreError>) -> Option<u64> {
    let text = result.as_ref().err()?.to_string();
    let time = text.strip_prefix("Redis returned an error: OUTSIDE ")?.parse().ok()?;
    (time <= MAX_NUMBER).then_some(time)
}

/// Returns the result of each correction of a reply.
pub(in crate::store::redis) fn corrected(count: usize, reply: Value) -> Vec<Result<Corrected, StoreError>> {
    let mut texts = match reply {
        Value::Array(texts) => texts.into_iter(),
        Value::BulkString(text) if text.is_empty() => return vec![Ok(Corrected::Whole); count],
        _ => return vec![Err(unexpected()); count],
    };
    let result = |text| match text {
        Some(Value::BulkString(text)) if text.is_empty() => Ok(Corrected::Whole),
        Some(Value::BulkString(text)) if text == b"CUT" => Ok(Corrected::Cut),
        Some(Value::BulkString(text)) if text.starts_with(b"HELD") => believed(&text).ok_or_else(unexpected),
        Some(Value::BulkString(text)) if text.starts_with(b"STEP") => penalized(&text).ok_or_else(unexpected),
        Some(Value::BulkString(text)) => Err(failure(&text)),
        _ => Err(unexpected()),
    };
    (0..count).map(|_| result(texts.next())).collect()
}

/// Returns what is believed of a process, such as `HELD 3 12`, or `HELD` if nothing is known of it.
fn believed(text: &[u8]) -> Option<Corrected> {
    let mut words = std::str::from_utf8(text).ok()?.split(' ').skip(1).map(str::parse);
    let (permits, released) = match (words.next(), words.next()) {
        (None, None) => return Some(Corrected::Believed(None)),
        (Some(permits), Some(released)) => (permits.ok()?, released.ok()?),
        _ => return None,
    };
    Some(Corrected::Believed(Some(Believed { permits, released })))
}

/// Returns the step of a penalty, such as `STEP 2`.
fn penalized(text: &[u8]) -> Option<Corrected> {
    let step = std::str::from_utf8(text).ok()?.strip_prefix("STEP ")?.parse().ok()?;
    Some(Corrected::Penalized(step))
}

/// What a script has read of a key.
struct Read {
    /// Whether the charge's own policy admits it.
    admitted: bool,
    snapshot: Snapshot,
    pause: Option<Pause>,
}

/// Reads the elements of a reply, in order.
struct ReplyReader {
    values: IntoIter<Value>,
    now: u64,
}

impl ReplyReader {
    fn new(reply: Value) -> Result<Self, StoreError> {
        let values = match reply {
            Value::Array(values) => values,
            Value::BulkString(packed) => unpacked(&packed).ok_or_else(unexpected)?,
            _ => return Err(unexpected()),
        };
        let mut reader = ReplyReader { values: values.into_iter(), now: 0 };
        reader.now = reader.number()?;
        Ok(reader)
    }

    /// Reads the outcome of a decision: `Err` if the reply is invalid, `Ok(Err)` if the decision failed.
    fn outcome(&mut self, charges: &[Charge]) -> Result<Result<Box<Outcome>, StoreError>, StoreError> {
        match self.values.as_slice().first() {
            Some(Value::Int(_)) => self.decision(charges, Self::plain_snapshot),
            Some(Value::BulkString(_)) => Ok(Err(self.error()?)),
            _ => {
                let Some(Value::Array(list)) = self.values.next() else { return Err(unexpected()) };
                let mut decision = ReplyReader { values: list.into_iter(), now: self.now };
                let outcome = decision.decision(charges, Self::full_snapshot)?;
                decision.finish()?;
                Ok(outcome)
            }
        }
    }

    /// Reads a decision: for each charge whether its own policy admits it, and what the script has read.
    fn decision(
        &mut self,
        charges: &[Charge],
        read: impl Fn(&mut Self, &Charge) -> Result<Read, StoreError>,
    ) -> Result<Result<Box<Outcome>, StoreError>, StoreError> {
        let (mut snapshots, mut admitted) = (Snapshots::new(), SmallVec::<[bool; INLINE]>::new());
        let (mut failed, mut paused) = (Vec::new(), Pauses::default());
        for (index, charge) in charges.iter().enumerate() {
            if charge.shadow && matches!(self.values.as_slice().first(), Some(Value::BulkString(_))) {
                failed.push((index, self.error()?.to_string()));
                // A placeholder: the verdict on it is replaced below.
                snapshots.push(charge.spec.check(None, self.now, charge.cost));
                admitted.push(false);
            } else {
                let Read { admitted: own, snapshot, pause } = read(self, charge)?;
                snapshots.push(snapshot);
                admitted.push(own);
                if let Some(pause) = pause {
                    paused.push(index, pause);
                }
            }
        }
        // Made where it stays, because it is large.
        let mut outcome = Box::<Outcome>::default();
        (outcome.now, outcome.paused) = (self.now, paused);
        outcome.judge(charges, &mut snapshots);
        failed.iter().for_each(|(index, _)| outcome.verdicts[*index] = Verdict::default());
        outcome.failed = failed;
        // The script has decided; the verdicts only explain it. If the two differed, a call could pass uncharged.
        let agree = match is_peek(charges) {
            // To a script, what costs nothing is admitted.
            true => charges.iter().zip(admitted).all(|(charge, admitted)| admitted || charge.shadow),
            false => outcome.verdicts.iter().map(|verdict| verdict.admitted).eq(admitted),
        };
        Ok(if agree { Ok(outcome) } else { Err(disagreement()) })
    }

    /// Reads what the pass over plain states has read of a key: a time, which is negative if the policy refuses, and what else there
    /// is to the state.
    fn plain_snapshot(&mut self, charge: &Charge) -> Result<Read, StoreError> {
        let Some(Value::Int(signed)) = self.values.next() else { return Err(unexpected()) };
        let time = signed.unsigned_abs();
        if time == 0 || time > MAX_NUMBER {
            return Err(unexpected());
        }
        let snapshot = match charge.spec {
            AlgorithmSpec::Gcra(_) => [time, 0, 0, 0, 0],
            AlgorithmSpec::FixedWindow(_) => [time, self.number()?, 0, 0, 0],
            AlgorithmSpec::CalendarWindow(_) => [time, self.number()?, self.number()?, self.number()?, 0],
            AlgorithmSpec::SlidingWindow(_) => {
                let counted = self.number()?;
                let fits_at = if signed < 0 || charge.cost == 0 { self.number()? } else { 0 };
                [counted, fits_at, time, 0, 0]
            }
            AlgorithmSpec::IntervalBucket(spec) if !spec.adjustable => [time, self.number()?, 0, 0, 0],
            AlgorithmSpec::AdjustableGcra(spec) => spec.at_own_rate(time, self.now, charge.cost),
            AlgorithmSpec::SettledGcra(spec) => {
                let made = self.number()?;
                spec.at_own_rate(time, made, self.now, charge.cost)
            }
            AlgorithmSpec::Holds(_) => {
                let is_forgotten = signed < 0 && self.number()? > 0;
                HoldsSpec::snapshot(self.now, time - 1, is_forgotten, false)
            }
            _ => return Err(unexpected()),
        };
        Ok(Read { admitted: signed > 0, snapshot, pause: None })
    }

    /// Reads what an algorithm has read of a key, after whether its policy admits the charge, and the pause of the key if there is
    /// one.
    fn full_snapshot(&mut self, charge: &Charge) -> Result<Read, StoreError> {
        let mut snapshot = Snapshot::default();
        let (admitted, pause) = match self.values.next() {
            Some(Value::Int(flag @ 0..=1)) => (flag == 1, None),
            Some(Value::Int(signed)) if signed.unsigned_abs() <= MAX_NUMBER => {
                let (moved, penalty) = (self.number()?, self.penalty()?);
                (signed > 0, Some(Pause { until: signed.unsigned_abs(), moved, penalty }))
            }
            _ => return Err(unexpected()),
        };
        for (index, number) in snapshot[..width(&charge.spec)].iter_mut().enumerate() {
            let is_double = index == 1 && matches!(charge.spec, AlgorithmSpec::WarmingUp(_));
            *number = if is_double { self.double()?.to_bits() } else { self.number()? };
        }
        if let AlgorithmSpec::Holds(_) = charge.spec {
            let [held, is_forgotten, is_later, ..] = snapshot;
            snapshot = HoldsSpec::snapshot(self.now, held, is_forgotten > 0, is_later > 0);
        }
        Ok(Read { admitted, snapshot, pause })
    }

    fn penalty(&mut self) -> Result<Penalty, StoreError> {
        let step = match self.values.next() {
            Some(Value::Int(step)) if step.unsigned_abs() <= MAX_NUMBER => step,
            _ => return Err(unexpected()),
        };
        let is_spent = step < 0;
        let step = if is_spent { (step + 1).unsigned_abs() } else { step.unsigned_abs() };
        Ok(Penalty { step, is_spent, forgiven_in: self.number()? })
    }

    fn finish(mut self) -> Result<(), StoreError> {
        if self.values.next().is_some() { Err(unexpected()) } else { Ok(()) }
    }

    /// Reads an error that the script caught.
    fn error(&mut self) -> Result<StoreError, StoreError> {
        self.text().map(|text| failure(&text)).ok_or_else(unexpected)
    }

    fn number(&mut self) -> Result<u64, StoreError> {
        match self.values.next() {
            Some(Value::Int(number)) => u64::try_from(number).ok(),
            _ => None,
        }
        .filter(|number| *number <= MAX_NUMBER)
        .ok_or_else(unexpected)
    }

    fn double(&mut self) -> Result<f64, StoreError> {
        let text = self.text().ok_or_else(unexpected)?;
        let double = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
        double.filter(|double| (0.0..=MAX_NUMBER as f64).contains(double)).ok_or_else(unexpected)
    }

    fn text(&mut self) -> Option<Vec<u8>> {
        match self.values.next() {
            Some(Value::BulkString(text)) => Some(text),
            _ => None,
        }
    }
}

/// Returns the integers of a packed reply, or `None` if it is anything else than a list of doubles.
fn unpacked(packed: &[u8]) -> Option<Vec<Value>> {
    let (numbers, []) = packed.as_chunks() else { return None };
    let number = |bytes: &[u8; 8]| {
        let number = f64::from_le_bytes(*bytes);
        // Beyond that it is not read, so that this is exact.
        (number.trunc() == number && number.abs() <= MAX_NUMBER as f64).then_some(Value::Int(number as i64))
    };
    numbers.iter().map(number).collect()
}

/// Returns the error of this text, which a script caught.
fn failure(text: &[u8]) -> StoreError {
    let text = String::from_utf8_lossy(text);
    let message = message(&text);
    if is_permanent(&text) { StoreError::permanent(message) } else { StoreError::transient(message) }
}

fn unexpected() -> StoreError {
    StoreError::transient("unexpected reply from the rate-limit script")
}

fn disagreement() -> StoreError {
    StoreError::permanent("the script and this version of the library disagree about a decision")
}

/// Returns the number of elements of a check's reply.
fn width(spec: &AlgorithmSpec) -> usize {
    match spec {
        AlgorithmSpec::AdjustableGcra(_) | AlgorithmSpec::SettledGcra(_) => 5,
        AlgorithmSpec::IntervalBucket(spec) if spec.adjustable => 5,
        AlgorithmSpec::WarmingUp(spec) if spec.adjustable => 5,
        AlgorithmSpec::Gcra(_) | AlgorithmSpec::WarmingUp(_) => 2,
        AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::SlidingWindow(_) | AlgorithmSpec::Holds(_) => 3,
        AlgorithmSpec::FixedWindow(_) | AlgorithmSpec::CalendarWindow(_) => 4,
    }
}

#[cfg(test)]
mod properties;
