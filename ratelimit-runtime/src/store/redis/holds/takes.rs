//! What decisions ask for, and what they take along.

use super::{Holds, now, permits};
use crate::algorithm::Verdict;
use crate::algorithm::believed_holds::Taken;
use crate::algorithm::holds::HoldsSpec;
use crate::key::Key;
use crate::store::account::{Reply, Sent};
use crate::store::charge::{Charge, Outcome};
use crate::store::error::StoreError;
use crate::store::redis::scripts::time_asked_for;

/// The permits that decisions ask for, in the order of their charges. Once this is dropped, it is not known whether they got them.
pub(in crate::store::redis) struct Takes<'a> {
    holds: &'a Holds,
    asked: Vec<Asked<'a>>,
}

struct Asked<'a> {
    decision: usize,
    charge: usize,
    key: &'a Key,
    permits: u64,
    /// `None` once it has a reply.
    sent: Option<Sent>,
}

impl Holds {
    /// Asks for the permits of decisions that are about to be sent.
    ///
    /// # Errors
    ///
    /// If there are any, and no thread that would say what still runs, as in a forked child.
    pub(in crate::store::redis) fn ask<'a>(
        &'a self,
        decisions: impl Iterator<Item = &'a [Charge]>,
    ) -> Result<Takes<'a>, StoreError> {
        let mut asked = Vec::new();
        for (decision, charges) in decisions.enumerate() {
            for (index, charge) in charges.iter().enumerate() {
                if charge.is_take() {
                    if let (true, Err(error)) = (asked.is_empty(), self.speaker()()) {
                        let text = format!("there is no thread that speaks for calls that run: {error}");
                        return Err(StoreError::permanent(text));
                    }
                    let (key, permits) = (&charge.key, permits(charge));
                    asked.push(Asked { decision, charge: index, key, permits, sent: self.take(charge) });
                }
            }
        }
        Ok(Takes { holds: self, asked })
    }
}

impl Takes<'_> {
    /// Takes note of what was decided, and gives those that hold permits their holds. A reply that comes so late that Redis may soon
    /// forget the holds is none.
    pub(in crate::store::redis) fn hear(
        mut self,
        decisions: &[&[Charge]],
        outcomes: &mut [Result<Box<Outcome>, StoreError>],
    ) {
        for asked in &mut self.asked {
            let outcome =
                outcomes.get_mut(asked.decision).filter(|outcome| time_asked_for(outcome).is_none());
            let Some(outcome) = outcome else {
                // What a script leaves undecided is not charged, nor what it is to be asked for again.
                asked.reply(self.holds, Reply::Undone);
                continue;
            };
            let Some(reply) = outcome.as_ref().ok().and_then(|outcome| taken(outcome, asked.charge)) else {
                asked.reply(self.holds, Reply::Unknown);
                continue;
            };
            let is_late = asked.sent.is_some_and(|sent| now() >= sent.sent_at() + sent.ttl() / 2);
            if is_late {
                asked.reply(self.holds, Reply::Unknown);
                *outcome = Err(StoreError::transient("Redis replied too late for permits that a call holds"));
                continue;
            }
            if let Ok(outcome) = outcome {
                let charges = decisions[asked.decision];
                outcome.asks_again |= reply == Taken::Forgotten && is_only_forgotten(charges, outcome);
            }
            if asked.reply(self.holds, Reply::Taken(reply))
                && let Ok(outcome) = outcome
            {
                outcome.holds.push(self.holds.hold(asked.charge, asked.key.clone(), asked.permits));
            }
        }
    }

    /// Takes note that nothing was sent.
    pub(in crate::store::redis) fn hear_not_sent(mut self) {
        self.asked.iter_mut().for_each(|asked| _ = asked.reply(self.holds, Reply::Undone));
    }

    /// Returns what is said about holds in a call with these, in order.
    pub(in crate::store::redis) fn sent(&self) -> impl Iterator<Item = Option<Sent>> {
        self.asked.iter().map(|asked| asked.sent)
    }
}

impl Drop for Takes<'_> {
    fn drop(&mut self) {
        self.asked.iter_mut().for_each(|asked| _ = asked.reply(self.holds, Reply::Unknown));
    }
}

impl Asked<'_> {
    /// Takes note of the reply, unless there was one. Returns whether the call starts.
    fn reply(&mut self, holds: &Holds, reply: Reply) -> bool {
        self.sent.take().is_some_and(|sent| holds.hear(self.key, sent, reply))
    }
}

/// Returns what became of a take, unless it failed, as only one in shadow can.
fn taken(outcome: &Outcome, charge: usize) -> Option<Taken> {
    let verdict = &outcome.verdicts[charge];
    let has_failed = outcome.failed.iter().any(|(failed, _)| *failed == charge);
    (!has_failed).then_some(if HoldsSpec::is_forgotten(verdict) {
        Taken::Forgotten
    } else if outcome.admitted && verdict.admitted {
        Taken::Yes
    } else {
        Taken::No
    })
}

/// Whether all that refuse a call do so because they have forgotten what this process holds.
fn is_only_forgotten(charges: &[Charge], outcome: &Outcome) -> bool {
    let mut pairs = charges.iter().zip(&outcome.verdicts);
    // One in shadow refuses nothing.
    let refuses = |(charge, verdict): (&Charge, &Verdict)| {
        !charge.shadow && !verdict.admitted && !HoldsSpec::is_forgotten(verdict)
    };
    !outcome.admitted && !pairs.any(refuses)
}
