//! What the scripts reply.

use redis::Value;

use super::is_permanent;
use crate::algorithm::{AlgorithmSpec, Snapshot, Verdict};
use crate::error::store::StoreError;
use crate::store::{Charge, Outcome, judge};

/// No number of a script is beyond those that Lua counts exactly.
const MOST: u64 = 1 << 53;

/// What the reply says of each list.
pub(in crate::store::redis) fn outcomes(
    decisions: &[&[Charge]],
    reply: Value,
) -> Result<Vec<Result<Outcome, StoreError>>, StoreError> {
    let odd = || StoreError::transient("Redis replied something that none of our scripts replies");
    let Value::Array(values) = reply else { return Err(odd()) };
    let mut values = values.into_iter();
    let number = |value: Option<Value>| match value {
        Some(Value::Int(number)) => {
            u64::try_from(number).ok().filter(|number| *number <= MOST).ok_or_else(odd)
        }
        _ => Err(odd()),
    };
    let flag = |value: Option<Value>| match number(value)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(odd()),
    };
    // A double, whose bits make the snapshot.
    let text = |value: Option<Value>| match value {
        Some(Value::BulkString(text)) => {
            let double = std::str::from_utf8(&text).ok().and_then(|text| text.parse::<f64>().ok());
            double.filter(|double| (0.0..=MOST as f64).contains(double)).map(f64::to_bits).ok_or_else(odd)
        }
        _ => Err(odd()),
    };
    let now = number(values.next())?;
    let mut outcomes = Vec::with_capacity(decisions.len());
    for charges in decisions {
        let decided = match values.next() {
            Some(Value::BulkString(problem)) => {
                outcomes.push(Err(failure(&problem)));
                continue;
            }
            decided => flag(decided)?,
        };
        let mut snapshots = Vec::with_capacity(charges.len());
        let (mut shadows, mut failed) = (Vec::new(), Vec::new());
        for (at, charge) in charges.iter().enumerate() {
            let mut snapshot = Snapshot::default();
            if let (true, Some(Value::BulkString(problem))) = (charge.shadow, values.as_slice().first()) {
                failed.push((at, failure(problem).to_string()));
                values.next();
                // Stands in until the verdict is replaced.
                snapshot = charge.spec.check(None, now, charge.cost);
            } else {
                for (at, place) in snapshot[..width(&charge.spec)].iter_mut().enumerate() {
                    let is_text = at == 1 && matches!(charge.spec, AlgorithmSpec::WarmingUp(_));
                    *place = if is_text { text(values.next())? } else { number(values.next())? };
                }
            }
            snapshots.push(snapshot);
            if charge.shadow {
                shadows.push(flag(values.next())?);
            }
        }
        let (admitted, mut verdicts) = judge(charges, &snapshots, now);
        failed.iter().for_each(|(at, _)| verdicts[*at] = Verdict::default());
        // The script has decided; what it read only tells why. Were the two ever to differ, nobody may pass uncharged.
        let judged = charges.iter().zip(&verdicts).filter(|(charge, _)| charge.shadow);
        let same = admitted == decided && judged.map(|(_, verdict)| verdict.admitted).eq(shadows);
        outcomes.push(if same {
            Ok(Outcome { now, admitted, verdicts, failed })
        } else {
            Err(StoreError::permanent("the script and this version of the library differ about a decision"))
        });
    }
    if values.next().is_some() { Err(odd()) } else { Ok(outcomes) }
}

/// What a script told of an error that it met.
fn failure(told: &[u8]) -> StoreError {
    let told = String::from_utf8_lossy(told);
    let problem = format!("Redis failed: {told}");
    if is_permanent(&told) { StoreError::permanent(problem) } else { StoreError::transient(problem) }
}

/// How many numbers a check replies.
fn width(spec: &AlgorithmSpec) -> usize {
    match spec {
        AlgorithmSpec::Gcra(_) | AlgorithmSpec::WarmingUp(_) | AlgorithmSpec::FixedWindow(_) => 2,
        AlgorithmSpec::IntervalBucket(_) | AlgorithmSpec::SlidingWindow(_) => 3,
    }
}

#[cfg(test)]
mod properties;

#[cfg(test)]
mod tests {
    use super::super::is_permanent;

    #[test]
    fn a_value_of_another_program_is_a_defect() {
        for told in [
            "WRONGTYPE",
            "CORRUPT",
            "WRONGTYPE Operation against a key holding the wrong kind of value",
            "CORRUPT the value under this key is not the state of a limiter",
            "CORRUPT the value under this key is not the state of a limiter script: 6e2b, on @user_script:1.",
            "WRONGTYPE: Operation against a key holding the wrong kind of value",
            "ERR Error running script (call to f_6e2b): @user_script:12: WRONGTYPE Operation against a key",
            "user_script:93: attempt to perform arithmetic on a nil value",
            "ERR user_script:93: attempt to compare number with nil script: 6e2b, on @user_script:93.",
        ] {
            assert!(is_permanent(told), "{told}");
        }
    }

    #[test]
    fn a_server_in_trouble_is_no_defect() {
        for told in [
            "ERR",
            "OOM command not allowed when used memory > 'maxmemory'.",
            "@user_script: 12: -OOM command not allowed when used memory > 'maxmemory'.",
            "READONLY You can't write against a read only replica.",
            "MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk.",
            "NOREPLICAS Not enough good replicas to write.",
            "NOPERM the user of this connection may not run EXPIREAT",
            "ERR The user executing the script can't run this command or subcommand",
            "BUSY Redis is busy running a script. You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
            "LOADING Redis is loading the dataset in memory",
        ] {
            assert!(!is_permanent(told), "{told}");
        }
    }
}
