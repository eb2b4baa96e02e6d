//! What decisions ask for, and what they take along.

use super::{Holds, is_take, now, permits};
use crate::algorithm::Verdict;
use crate::algorithm::believed_holds::Taken;
use crate::algorithm::holds::HoldsSpec;
use crate::base::runtime::BACKGROUND;
use crate::key::Key;
use crate::store::account::{Reply, Sent};
use crate::store::charge::{Charge, Outcome};
use crate::store::error::StoreError;
use crate::store::redis::scripts::HoldMessages;

/// The permits that decisions ask for, in the order of their charges. Dropped, nobody knows whether they got them.
pub(in crate::store::redis) struct Takes<'a> {
    holds: &'a Holds,
    asked: Vec<Asked<'a>>,
    /// What they take along, one decision each, before the others.
    released: Vec<Released>,
}

/// A release that travels with decisions.
struct Released {
    /// What reads its reply: a charge that costs nothing.
    charge: [Charge; 1],
    /// `None` once it has a reply.
    sent: Option<Sent>,
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
        let (mut asked, mut released) = (Vec::new(), Vec::new());
        for (decision, charges) in decisions.enumerate() {
            for (index, charge) in charges.iter().enumerate() {
                if is_take(charge) {
                    if let (true, Err(error)) = (asked.is_empty(), BACKGROUND.handle()) {
                        let text = format!("there is no thread that speaks for calls that run: {error}");
                        return Err(StoreError::permanent(text));
                    }
                    let (key, permits) = (&charge.key, permits(charge));
                    let (sent, release) = self.take(charge).unzip();
                    released.extend(release.flatten().map(|sent| Released {
                        charge: [Charge { cost: 0, wait: 0, shadow: false, ..charge.clone() }],
                        sent: Some(sent),
                    }));
                    asked.push(Asked { decision, charge: index, key, permits, sent });
                }
            }
        }
        Ok(Takes { holds: self, asked, released })
    }
}

impl Takes<'_> {
    /// Takes note of what was decided, and gives those that hold permits their holds. A reply that comes so late that Redis may soon
    /// forget the holds is none.
    pub(in crate::store::redis) fn hear(
        mut self,
        decisions: &[&[Charge]],
        outcomes: &mut Vec<Result<Box<Outcome>, StoreError>>,
    ) {
        let decided = self.released.len().min(outcomes.len());
        for (outcome, released) in outcomes.drain(..decided).zip(&mut self.released) {
            released.reply(self.holds, if outcome.is_ok() { Reply::Done } else { Reply::Unknown });
        }
        for Released { charge: [charge], sent } in &mut self.released[decided..] {
            // What a script leaves undecided is not made.
            sent.take().into_iter().for_each(|sent| self.holds.say(&charge.key, charge.spec, sent));
        }
        for asked in &mut self.asked {
            let Some(outcome) = outcomes.get_mut(asked.decision) else {
                // What a script leaves undecided is not charged.
                asked.reply(self.holds, Reply::Taken(Taken::No));
                continue;
            };
            let Some(reply) = outcome.as_ref().ok().map(|outcome| taken(outcome, asked.charge)) else {
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

    /// Whether there are none.
    pub(in crate::store::redis) fn is_empty(&self) -> bool {
        self.asked.is_empty()
    }

    /// Takes note that nothing was sent.
    pub(in crate::store::redis) fn hear_not_sent(mut self) {
        self.asked.iter_mut().for_each(|asked| _ = asked.reply(self.holds, Reply::Taken(Taken::No)));
    }

    /// Returns the decisions of a call with these, and what they take along.
    pub(in crate::store::redis) fn with_releases<'d>(
        &'d self,
        decisions: impl Iterator<Item = &'d [Charge]> + Clone,
    ) -> impl Iterator<Item = &'d [Charge]> + Clone {
        self.released.iter().map(|released| released.charge.as_slice()).chain(decisions)
    }

    /// Returns what is said about holds in a call with these, in order.
    pub(in crate::store::redis) fn said(&self) -> HoldMessages {
        let releases = self.released.iter().filter_map(|released| released.sent);
        let takes = self.asked.iter().map(|asked| asked.sent);
        HoldMessages { releases: releases.collect(), takes: takes.collect() }
    }
}

impl Drop for Takes<'_> {
    fn drop(&mut self) {
        self.asked.iter_mut().for_each(|asked| _ = asked.reply(self.holds, Reply::Unknown));
        self.released.iter_mut().for_each(|released| released.reply(self.holds, Reply::Unknown));
    }
}

impl Asked<'_> {
    /// Takes note of the reply, unless there was one. Returns whether the call starts.
    fn reply(&mut self, holds: &Holds, reply: Reply) -> bool {
        self.sent.take().is_some_and(|sent| holds.hear(self.key, sent, reply))
    }
}

impl Released {
    /// Takes note of the reply, unless there was one.
    fn reply(&mut self, holds: &Holds, reply: Reply) {
        if let Some(sent) = self.sent.take() {
            holds.hear(&self.charge[0].key, sent, reply);
        }
    }
}

/// Returns what became of a take.
fn taken(outcome: &Outcome, charge: usize) -> Taken {
    let verdict = &outcome.verdicts[charge];
    if HoldsSpec::is_forgotten(verdict) {
        Taken::Forgotten
    } else if outcome.admitted && verdict.admitted {
        Taken::Yes
    } else {
        Taken::No
    }
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
