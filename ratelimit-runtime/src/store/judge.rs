//! How a list of charges is decided, given what was read of their keys.

use super::charge::{Charge, Outcome, Verdicts, is_peek};
use crate::algorithm::gcra::{GcraKind, GcraSpec};
use crate::algorithm::{AlgorithmSpec, Pause, Snapshot, Verdict};

impl Outcome {
    /// Sets the verdict on each charge, and whether every required one is admitted. If one is not, nothing is charged, and the
    /// others report the state as it is. The snapshots of charges that are made for a later slot are moved to it.
    pub fn judge(&mut self, charges: &[Charge], snapshots: &mut [Snapshot]) {
        let Outcome { now, admitted, verdicts, paused, .. } = self;
        let pause = |charge| paused.of(charge);
        verdicts.clear();
        let is_peek = is_peek(charges);
        verdicts.extend(charges.iter().zip(&*snapshots).enumerate().map(|(index, (charge, snapshot))| {
            if is_peek {
                return charge.spec.peek(pause(index), *snapshot, *now);
            }
            let verdict = charge.spec.verdict_in(pause(index), *snapshot, *now, charge.cost, charge.wait);
            // A shadow delays no call, whatever slot it takes.
            Verdict { wait: if charge.shadow { 0 } else { verdict.wait }, ..verdict }
        }));
        let all_admitted = |verdicts: &Verdicts| {
            charges.iter().zip(verdicts).all(|(charge, verdict)| verdict.admitted || charge.shadow)
        };
        *admitted = all_admitted(verdicts);
        if *admitted && let Some(line) = line_of(charges) {
            start_together(line, *now, charges, snapshots, verdicts, pause);
            *admitted = all_admitted(verdicts);
        }
        if !*admitted {
            let all = charges.iter().zip(&*snapshots).zip(verdicts).enumerate();
            let unused = all.filter(|(_, (_, verdict))| verdict.admitted);
            unused.for_each(|(index, ((charge, snapshot), verdict))| {
                *verdict = charge.spec.verdict_in(pause(index), *snapshot, *now, 0, 0);
            });
        }
    }
}

/// Returns the index of the charge at whose slot a call starts that has to be admitted by several literal buckets, and may wait for
/// one: its line, which is the queue, or else the fastest one that may wait. `None` for any other list, also of two queues. Each
/// charge comes with how long the call may wait for it.
pub(crate) fn line<'a>(charges: impl Iterator<Item = (&'a Charge, u64)> + Clone) -> Option<usize> {
    if charges.clone().all(|(_, wait)| wait == 0) {
        return None;
    }
    let (mut line, mut count, mut queues) = (None, 0, 0);
    for (index, (charge, wait)) in charges.enumerate() {
        if charge.cost == 0 || charge.shadow {
            continue;
        }
        let AlgorithmSpec::Gcra(bucket) = &charge.spec else { return None };
        let is_queue = bucket.kind == GcraKind::Queue;
        if is_queue && wait == 0 {
            return None;
        }
        (count, queues) = (count + 1, queues + usize::from(is_queue));
        let rank = (!is_queue, bucket.interval);
        if wait > 0 && line.is_none_or(|(_, first)| rank < first) {
            line = Some((index, rank));
        }
    }
    line.filter(|_| count > 1 && queues < 2).map(|(index, _)| index)
}

/// Returns the same of charges that wait as they say.
pub(super) fn line_of(charges: &[Charge]) -> Option<usize> {
    line(charges.iter().map(|charge| (charge, charge.wait)))
}

/// Moves the other charges of a call that waits to the slot of its line, so that all of them count when it starts. They have to be
/// ready by then: those that are not refuse, until they will be by the slot that the line gives now.
fn start_together(
    line: usize,
    now: u64,
    charges: &[Charge],
    snapshots: &mut [Snapshot],
    verdicts: &mut Verdicts,
    pause: impl Fn(usize) -> Option<Pause>,
) {
    let (wait, mut is_late) = (verdicts[line].wait, false);
    let all = charges.iter().zip(&*snapshots).zip(&mut *verdicts).enumerate();
    for (index, ((charge, snapshot), verdict)) in all {
        if verdict.wait > wait {
            let retry_after = Some(verdict.wait - wait);
            let refused = charge.spec.verdict_in(pause(index), *snapshot, now, 0, 0);
            *verdict = Verdict { admitted: false, retry_after, ..refused };
            is_late = true;
        }
    }
    if is_late || wait == 0 {
        return;
    }
    for (index, charge) in charges.iter().enumerate() {
        if let AlgorithmSpec::Gcra(bucket) = &charge.spec
            && index != line
            && charge.cost > 0
            && !charge.shadow
        {
            snapshots[index] = GcraSpec::moved_to(snapshots[index], now + wait);
            let verdict = bucket.verdict_at(snapshots[index], now, wait, charge.cost);
            let is_paused = pause(index).is_some_and(|pause| pause.left(now) > 0);
            let remaining = if is_paused { 0 } else { verdict.remaining };
            verdicts[index] = Verdict { remaining, ..verdict };
        }
    }
}
