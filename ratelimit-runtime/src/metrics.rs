//! Metrics of limits, recorded with the [`metrics`](https://docs.rs/metrics/0.24) facade, for Prometheus and other systems.
//!
//! | series | kind | labels | meaning |
//! | --- | --- | --- | --- |
//! | `ratelimits_decisions_total` | counter | `policy`, `outcome`, `source` | calls, for each policy that was asked |
//! | `ratelimits_wait_seconds` | histogram | `policy` | how long calls waited, of those that did |
//! | `ratelimits_limit` | gauge | `policy` | the burst, capacity or limit of the policy, in permits; for a `queue` its capacity plus one |
//! | `ratelimits_waiting` | gauge | | calls that wait now |
//! | `ratelimits_store_seconds` | histogram | | how long Redis took for a script call, which decides one call or a batch |
//! | `ratelimits_store_up` | gauge | | 0 during an outage of the store, otherwise 1 |
//! | `ratelimits_store_outages_total` | counter | | outages of the store |
//! | `ratelimits_store_failed_decisions_total` | counter | | decisions that the store failed to make |
//!
//! An [`observer`] records the first three, the store itself `ratelimits_store_seconds`, and [`record_state`] the others. No label
//! has a part of a key. At most 1,000 policies of an observer have a label of their own, and all further ones share
//! `policy="(other)"`.

mod handles;
mod recorder;

use std::sync::Arc;

use self::handles::{DECISIONS, LIMIT, PolicySeries};
use ::metrics::{Unit, counter, gauge, histogram};
use ::metrics::{describe_counter, describe_gauge, describe_histogram};

use crate::by_policy::ByPolicy;
use crate::observer::{Observation, Owner};
use crate::registry::Registry;
use crate::source::Source;
use crate::store::series::CALL_TIME;

const WAIT: &str = "ratelimits_wait_seconds";
const WAITING: &str = "ratelimits_waiting";
const STORE_UP: &str = "ratelimits_store_up";
const OUTAGES: &str = "ratelimits_store_outages_total";
const FAILED_DECISIONS: &str = "ratelimits_store_failed_decisions_total";

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
    let (policies, owner) = (ByPolicy::default(), Owner::new());
    move |seen| {
        let by_name = || policies.get(seen.policy, |name| Arc::new(PolicySeries::new(name)));
        let other;
        let series = match seen.attached(&owner, by_name) {
            Some(series) => series,
            None => {
                other = by_name();
                &other
            }
        };
        series.record(seen, seen.limit().filter(|_| seen.source != Some(Source::Local)));
        if !seen.waited.is_zero() {
            histogram!(WAIT, "policy" => series.label().clone()).record(seen.waited);
        }
    }
}

/// Records what no single decision tells about a registry: its [`StoreHealth`](crate::StoreHealth), and how many of its calls wait.
///
/// Call it before each scrape, or on an interval. The series have no labels, so record one registry of a process: that which is
/// [`install`](crate::install)ed. On Redis, `ratelimits_waiting` includes calls that may have to wait while Redis decides.
pub fn record_state(registry: &Registry) {
    let health = registry.store_health();
    gauge!(STORE_UP).set(if health.healthy { 1.0 } else { 0.0 });
    counter!(OUTAGES).absolute(health.outages);
    counter!(FAILED_DECISIONS).absolute(health.failed_decisions);
    gauge!(WAITING).set(registry.backend().waiting() as f64);
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
