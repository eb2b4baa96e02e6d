//! What the documentation says that a fault costs at most, per key: `guide/outages.md` and `guide/concurrency.md`.

use super::Fault;
use super::PROCESSES;
use crate::functions::{Algorithm, CAPACITY, MAX, RATE};
use crate::log::Admission;

/// Returns the permits beyond the policy that a fault may cost.
pub(super) fn bound(fault: Fault, algorithm: Algorithm, admissions: &[&Admission]) -> u64 {
    let is_bucket = algorithm == Algorithm::Bucket;
    let capacity = if algorithm == Algorithm::Holds { MAX } else { CAPACITY };
    // All processes together decide by the policy once more: buckets by their burst when the outage begins, and by what comes until
    // that of Redis is full; windows by their limit; concurrency limits by their shares, of whose calls Redis hears afterwards.
    let outage = if is_bucket { 2 * capacity } else { capacity };
    match fault {
        Fault::None | Fault::Kill | Fault::StopWithDeny | Fault::SlotMove | Fault::ClockBack => 0,
        // That permit, which has to be found.
        Fault::Planted => 1,
        // Calls that run, until they have ended or their processes report them.
        Fault::Flush | Fault::ClockForward => capacity,
        Fault::Stop => outage,
        Fault::Restart | Fault::Failover => outage + capacity,
        // The share of each process that decides by it, for as long as it does: of the one that is cut off, and of one whose calls come
        // too late on a busy machine.
        Fault::Partition => (0..u64::from(PROCESSES))
            .filter_map(|process| {
                let is_local =
                    |admission: &&&Admission| admission.by == "local" && admission.process == process;
                let mut local = admissions.iter().filter(is_local).peekable();
                local.peek()?;
                Some(capacity / 2 + if is_bucket { refilled(RATE / 2, span(local)) } else { 0 })
            })
            .sum(),
        // Two buckets while there are two releases. A window keeps its count, and so do holds.
        Fault::Deploy if is_bucket => {
            let is_new = |admission: &&&Admission| admission.process >= u64::from(PROCESSES);
            let first_new = admissions.iter().find(is_new).map_or(0, |admission| admission.time);
            let old = admissions.iter().filter(|admission| !is_new(admission) && admission.time >= first_new);
            capacity + refilled(RATE, span(old))
        }
        Fault::Deploy => 0,
    }
}

/// Returns the nanoseconds between the first and the last of these calls.
fn span<'a>(admissions: impl Iterator<Item = &'a &'a Admission>) -> u64 {
    let times: Vec<u64> = admissions.map(|admission| admission.time).collect();
    times.last().unwrap_or(&0) - times.first().unwrap_or(&0)
}

/// Returns the permits of a rate in a time, rounded up.
fn refilled(rate: u64, nanos: u64) -> u64 {
    (rate * nanos).div_ceil(1_000_000_000)
}
