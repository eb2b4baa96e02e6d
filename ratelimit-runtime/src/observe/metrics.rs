//! The observer that records decisions as series, and what each series means.

use std::sync::Arc;

use ::metrics::{SharedString, Unit, counter, gauge, histogram};
use ::metrics::{describe_counter, describe_gauge, describe_histogram};

use crate::decide::observation::Observation;
use crate::observe::by_policy::ByPolicy;
use crate::store::series::CALL_TIME;
use crate::store::source::Source;

const DECISIONS: &str = "ratelimits_decisions_total";
const WAIT: &str = "ratelimits_wait_seconds";
const LIMIT: &str = "ratelimits_limit";
pub(crate) const WAITING: &str = "ratelimits_waiting";
pub(crate) const STORE_UP: &str = "ratelimits_store_up";
pub(crate) const OUTAGES: &str = "ratelimits_store_outages_total";
pub(crate) const FAILED_DECISIONS: &str = "ratelimits_store_failed_decisions_total";

/// Returns an observer that records each decision, for
/// [`RegistryBuilder::observer`](crate::RegistryBuilder::observer), and calls [`describe`].
///
/// `ratelimits_decisions_total` counts calls, whatever they cost, once for each policy that was asked. `outcome` is
/// [`CallOutcome::name`](crate::CallOutcome::name), `source` is [`Source::name`], or `none` if nothing decided the call.
///
/// `ratelimits_wait_seconds` has the calls that waited, in seconds, also if they were refused in the end. A call with several
/// policies is in the histogram of each. Calls that could have waited but did not are left out, so the count is that of the calls
/// that waited.
///
/// `ratelimits_limit` is the limit that the last call of the policy had. Shares of a limit, by which a process decides during an
/// outage, are left out.
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
    let labels = ByPolicy::default();
    move |seen| {
        let policy: SharedString = labels.get(seen.policy, |name| Arc::clone(name).into());
        let (outcome, source) = (seen.outcome.name(), seen.source.map_or("none", Source::name));
        counter!(DECISIONS, "policy" => policy.clone(), "outcome" => outcome, "source" => source)
            .increment(1);
        if let Some(quota) = seen.quota()
            && seen.source != Some(Source::Local)
        {
            gauge!(LIMIT, "policy" => policy.clone()).set(quota.limit as f64);
        }
        if !seen.waited.is_zero() {
            histogram!(WAIT, "policy" => policy).record(seen.waited);
        }
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
    describe_gauge!(WAITING, Unit::Count, "Calls that wait for permits now.");
    describe_histogram!(CALL_TIME, Unit::Seconds, "How long Redis took for a script call.");
    describe_gauge!(STORE_UP, "0 during an outage of the store, otherwise 1.");
    describe_counter!(OUTAGES, Unit::Count, "Outages of the store.");
    describe_counter!(FAILED_DECISIONS, Unit::Count, "Decisions that the store failed to make.");
}
