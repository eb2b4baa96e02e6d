//! The observer that records decisions as series, and what each series means.

mod handles;
mod holds;
mod kept;
mod recorder;

use std::sync::Arc;

use self::handles::{DECISIONS, LIMIT, PolicySeries};
use self::holds::{HOLD_TIME, HOLDS};
use ::metrics::{Unit, counter, histogram};
use ::metrics::{describe_counter, describe_gauge, describe_histogram};

use crate::decide::observation::{CallOutcome, Observation};
use crate::observe::by_policy::ByPolicy;
use crate::store::decided_by::DecidedBy;
use crate::store::series::CALL_TIME;

const WAIT: &str = "ratelimits_wait_seconds";
pub(crate) const WAITING: &str = "ratelimits_waiting";
pub(crate) const STORE_UP: &str = "ratelimits_store_up";
const PAUSES: &str = "ratelimits_pauses_total";
const NEAR_LIMIT: &str = "ratelimits_near_limit_total";
pub(crate) const OUTAGES: &str = "ratelimits_store_outages_total";
pub(crate) const FAILED_DECISIONS: &str = "ratelimits_store_failed_decisions_total";
pub(crate) const OVERRIDE_PROBLEMS: &str = "ratelimits_override_problems";

/// Returns an observer that records each decision, for
/// [`RegistryBuilder::observer`](crate::RegistryBuilder::observer), and calls [`describe`].
///
/// `ratelimits_decisions_total` counts calls, whatever they cost, once for each policy that was asked. `outcome` is
/// [`CallOutcome::name`](crate::CallOutcome::name), `source` is [`DecidedBy::name`], or `none` if nothing decided the call.
///
/// `ratelimits_wait_seconds` has the calls that waited, in seconds, also if they were refused in the end. A call with several
/// policies is in the histogram of each. Calls that could have waited but did not are left out, so the count is that of the calls
/// that waited.
///
/// `ratelimits_limit` is the limit that the last call of the policy had. Shares of a limit, by which a process decides during an
/// outage, are left out.
///
/// `ratelimits_pauses_total` counts [pauses](crate::Limiter::pause) of keys, which are no decisions.
///
/// `ratelimits_near_limit_total` counts keys that have used the share of their limit that `notify_at` says, once for each window over
/// all processes. These are no decisions.
///
/// `ratelimits_holds` is how many permits calls of this process hold now of a [concurrency limit](crate::ConcurrencyLimit), over all
/// of its keys, and `ratelimits_hold_seconds` has each of these calls once it has ended, in seconds. A shadow holds what it admits.
/// Calls that are let through during an outage hold nothing. Registries with policies of the same names need to share an observer,
/// as the gauge shows the holds that one observer has seen.
///
/// Without a recorder nothing is recorded. Install it first, because descriptions are not repeated.
///
/// ```
/// use ratelimits::{Registry, metrics};
///
/// let registry = Registry::builder().observer(metrics::observer()).in_memory();
/// metrics::record_state(&registry);
/// ```
pub fn observer() -> impl Fn(&Observation<'_>) + Send + Sync + 'static {
    describe();
    let policies = ByPolicy::default();
    move |seen| {
        let new = |name: &Arc<str>| Arc::new(PolicySeries::new(name));
        policies.with(seen, new, |series| record(series, seen));
    }
}

#[inline]
fn record(series: &PolicySeries, seen: &Observation<'_>) {
    if seen.outcome == CallOutcome::Paused {
        return counter!(PAUSES, "policy" => series.label().clone()).increment(1);
    }
    if seen.outcome == CallOutcome::NearLimit {
        return counter!(NEAR_LIMIT, "policy" => series.label().clone()).increment(1);
    }
    if seen.outcome == CallOutcome::Released {
        return series.end_hold(seen);
    }
    if seen.begins_hold() {
        series.begin_hold(seen);
    }
    series.record(seen, seen.limit().filter(|_| seen.source != Some(DecidedBy::Local)));
    if !seen.waited.is_zero() {
        histogram!(WAIT, "policy" => series.label().clone()).record(seen.waited);
    }
}

/// Tells the recorder what each series means, and its unit. [`observer`] does so, so call it only if the recorder is installed
/// later than that.
pub fn describe() {
    describe_counter!(DECISIONS, Unit::Count, "Calls, for each policy that was asked.");
    describe_histogram!(WAIT, Unit::Seconds, "How long calls waited for permits, of those that did.");
    describe_gauge!(
        LIMIT,
        Unit::Count,
        "The burst, capacity or limit of the policy, in permits; for a queue its capacity plus one."
    );
    describe_counter!(PAUSES, Unit::Count, "Pauses of keys, for each policy.");
    describe_counter!(
        NEAR_LIMIT,
        Unit::Count,
        "Keys that have used the share of `notify_at`, once a window."
    );
    describe_gauge!(HOLDS, Unit::Count, "Permits that calls hold now, for each concurrency limit.");
    describe_histogram!(HOLD_TIME, Unit::Seconds, "How long calls held their permits.");
    describe_gauge!(WAITING, Unit::Count, "Calls that wait for permits now.");
    describe_histogram!(CALL_TIME, Unit::Seconds, "How long Redis took for a script call.");
    describe_gauge!(STORE_UP, "0 during an outage of the store, otherwise 1.");
    describe_counter!(OUTAGES, Unit::Count, "Outages of the store.");
    describe_counter!(FAILED_DECISIONS, Unit::Count, "Decisions that the store failed to make.");
    describe_gauge!(
        OVERRIDE_PROBLEMS,
        Unit::Count,
        "Overrides that are ignored, and one more while overrides cannot be read."
    );
}
