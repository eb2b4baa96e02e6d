//! Requests that need not be sent, because Redis has refused one of their charges lately.

use tokio::time::Instant;

use crate::decide::request::AcquireRequest;
use crate::store::{Charge, Denials, Outcome, Verdict, Verdicts};

/// Refuses a request of which a charge is known to be refused. Keeps only such charges in it, as nothing is known of the others.
///
/// Sent are all requests that may wait, those with a shadow, whose policy would miss a call, and those that can never be admitted,
/// which would otherwise seem to be worth another try.
pub(super) fn refuse(request: &mut AcquireRequest, denials: &Denials) -> Option<Outcome> {
    let find = |index: usize| {
        let Charge { key, spec, cost, .. } = &request.charges()[index];
        Some((index, denials.find(key.fingerprint(), spec, *cost)?))
    };
    let known: Vec<(usize, Verdict)> = request.deniable().filter_map(find).collect();
    if known.is_empty() || request.may_wait() || request.has_shadow() || request.is_unsatisfiable() {
        return None;
    }
    let (denied, verdicts): (Vec<usize>, Verdicts) = known.into_iter().unzip();
    request.keep(&denied);
    Some(Outcome { verdicts, ..Outcome::default() })
}

/// Notes what Redis decided about a request that was sent at this time.
pub(super) fn record(request: &AcquireRequest, outcome: &Outcome, sent: Instant, denials: &Denials) {
    let pairs = || request.charges().iter().zip(&outcome.verdicts);
    if outcome.admitted {
        let made = pairs().filter(|(charge, verdict)| charge.is_made(verdict));
        made.for_each(|(charge, _)| denials.forget_other_numbers(charge));
        return;
    }
    for index in request.deniable() {
        let (charge, verdict) = (&request.charges()[index], &outcome.verdicts[index]);
        // The `retry_after` of a call that may wait in a queue is shorter than that of one that may not.
        if !verdict.admitted && charge.wait == 0 {
            denials.remember(charge, verdict, sent);
        }
    }
}
