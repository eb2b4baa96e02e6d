//! Parses the replies of the scripts.

use std::vec::IntoIter;

use redis::Value;

use crate::algorithm::{AlgorithmSpec, Snapshot, Verdict};
use crate::error::store::StoreError;
use crate::store::charge::{Charge, Outcome, judge};
use crate::store::redis::error_code::{is_permanent, message};

/// The largest number of a script: up to here Lua represents integers exactly.
const MAX_NUMBER: u64 = 1 << 53;

/// Returns the outcome of the only decision of a reply.
pub(in crate::store::redis) fn outcome(charges: &[Charge], reply: Value) -> Result<Outcome, StoreError> {
    let mut reply = ReplyReader::new(reply)?;
    let outcome = reply.outcome(charges)?;
    reply.finish()?;
    outcome
}

/// Returns the outcome of each decision of a reply.
pub(in crate::store::redis) fn outcomes(
    decisions: &[&[Charge]],
    reply: Value,
) -> Result<Vec<Result<Outcome, StoreError>>, StoreError> {
    let mut reply = ReplyReader::new(reply)?;
    let outcomes = decisions.iter().map(|charges| reply.outcome(charges)).collect::<Result<_, _>>()?;
    reply.finish()?;
    Ok(outcomes)
}

/// Reads the elements of a reply, in order.
struct ReplyReader {
    values: IntoIter<Value>,
    now: u64,
}

impl ReplyReader {
    fn new(reply: Value) -> Result<Self, StoreError> {
        let Value::Array(values) = reply else { return Err(unexpected()) };
        let mut reader = ReplyReader { values: values.into_iter(), now: 0 };
        reader.now = reader.number()?;
        Ok(reader)
    }

    /// Reads the outcome of a decision: `Err` if the reply is invalid, `Ok(Err)` if the decision failed.
    fn outcome(&mut self, charges: &[Charge]) -> Result<Result<Outcome, StoreError>, StoreError> {
        if let Some(text) = self.error_text() {
            return Ok(Err(script_error(&text)));
        }
        let (now, decided) = (self.now, self.flag()?);
        let mut snapshots = Vec::with_capacity(charges.len());
        let (mut shadows, mut failed) = (Vec::new(), Vec::new());
        for (index, charge) in charges.iter().enumerate() {
            let error = if charge.shadow { self.error_text() } else { None };
            snapshots.push(match error {
                Some(text) => {
                    failed.push((index, script_error(&text).to_string()));
                    // A placeholder: the verdict on it is replaced below.
                    charge.spec.check(None, now, charge.cost)
                }
                None => self.snapshot(&charge.spec)?,
            });
            if charge.shadow {
                shadows.push(self.flag()?);
            }
        }
        let (admitted, mut verdicts) = judge(charges, &snapshots, now);
        failed.iter().for_each(|(index, _)| verdicts[*index] = Verdict::default());
        // The script has decided; the verdicts only explain it. If the two differed, a call could pass uncharged.
        let judged = charges.iter().zip(&verdicts).filter(|(charge, _)| charge.shadow);
        let agree = admitted == decided && judged.map(|(_, verdict)| verdict.admitted).eq(shadows);
        Ok(if agree {
            Ok(Outcome { now, admitted, verdicts, failed })
        } else {
            Err(StoreError::permanent("the script and this version of the library disagree about a decision"))
        })
    }

    fn finish(mut self) -> Result<(), StoreError> {
        if self.values.next().is_some() { Err(unexpected()) } else { Ok(()) }
    }

    fn snapshot(&mut self, spec: &AlgorithmSpec) -> Result<Snapshot, StoreError> {
        let mut snapshot = Snapshot::default();
        for (index, number) in snapshot[..width(spec)].iter_mut().enumerate() {
            let is_double = index == 1 && matches!(spec, AlgorithmSpec::WarmingUp(_));
            *number = if is_double { self.double()?.to_bits() } else { self.number()? };
        }
        Ok(snapshot)
    }

    /// Reads the text of an error, if that is the next element.
    fn error_text(&mut self) -> Option<Vec<u8>> {
        match self.values.as_slice().first() {
            Some(Value::BulkString(_)) => self.text(),
            _ => None,
        }
    }

    fn number(&mut self) -> Result<u64, StoreError> {
        match self.values.next() {
            Some(Value::Int(number)) => u64::try_from(number).ok(),
            _ => None,
        }
        .filter(|number| *number <= MAX_NUMBER)
        .ok_or_else(unexpected)
    }

    fn flag(&mut self) -> Result<bool, StoreError> {
        match self.number()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(unexpected()),
        }
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

fn unexpected() -> StoreError {
    StoreError::transient("unexpected reply from the rate-limit script")
}

/// Returns the error that a script caught.
fn script_error(text: &[u8]) -> StoreError {
    let text = String::from_utf8_lossy(text);
    let message = message(&text);
    if is_permanent(&text) { StoreError::permanent(message) } else { StoreError::transient(message) }
}

/// Returns the number of elements of a check's reply.
fn width(spec: &AlgorithmSpec) -> usize {
    match spec {
        AlgorithmSpec::AdjustableGcra(_) => 5,
        AlgorithmSpec::IntervalBucket(spec) if spec.adjustable => 5,
        AlgorithmSpec::WarmingUp(spec) if spec.adjustable => 5,
        AlgorithmSpec::Gcra(_) | AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::FixedWindow(_) => 2,
        AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::SlidingWindow(_) => 3,
    }
}

#[cfg(test)]
mod properties;
